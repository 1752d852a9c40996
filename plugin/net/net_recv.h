// The receiving end: announces its receives to the sender and takes the bytes of each straight to
// the user's memory.
#pragma once

#include <vector>

#include "plugin/net/net_connection.h"

namespace riffle::net {

class RecvConnection final : public Connection {
 public:
  explicit RecvConnection(Reactor& reactor);

 private:
  struct Posted {
    Request* request = nullptr;  // null: free
    int message = 0;
    std::uint64_t id = 0;
  };

  void start(Request& request) override;
  void run() override;
  void stop() override;
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;

  Posted* find(std::uint64_t id);

  std::vector<Request*> unannounced_;  // in order
  int next_message_ = 0;               // of the first of them
  std::vector<Posted> posted_;         // by id
  std::uint64_t next_id_ = 0;
};

}  // namespace riffle::net
