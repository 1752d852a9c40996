// The sending end: matches its messages with the receives that the peer announces (kPosted), per
// tag in order of posting, and sends their bytes in pieces over all streams. A message without a
// receive waits here, not in the network.
#pragma once

#include <vector>

#include "plugin/net/net_connection.h"

namespace riffle::net {

class SendConnection final : public Connection {
 public:
  SendConnection(Reactor& reactor, std::size_t streams, std::size_t piece_bytes);

 private:
  struct Posting {
    std::uint64_t id = 0;
    int tag = 0;
    std::uint64_t capacity = 0;
    bool is_here = false;
  };

  void start(Request& request) override;
  void run() override;
  void stop() override;
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;

  bool match(Request& request);
  void feed();
  void send_piece(Request& request);

  const std::size_t max_frames_in_link_;
  const std::size_t streams_;
  const std::size_t piece_bytes_;
  std::size_t frames_in_link_ = 0;
  std::vector<Request*> waiting_;  // for a receive, in order
  std::vector<Request*> flowing_;  // matched, with bytes to hand out, in order
  std::vector<Posting> early_;     // by id: announcements that overtook others on their way
  std::vector<Posting> posted_;    // not matched yet, in order of posting
  std::uint64_t next_id_ = 0;      // of the announcement to take next
};

}  // namespace riffle::net
