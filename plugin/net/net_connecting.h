// Connecting: a connect() that is under way. NCCL calls connect() again and again with the same
// handle; the handle's scratch bytes hold a number under which the attempt is kept here, so that a
// mangled blob never becomes a pointer. An attempt that NCCL stopped asking for is dropped
// RIFFLE_CONNECT_TIMEOUT after its last question, whether or not anybody else connects meanwhile.
//
// Threads: poll on the caller's; the rest on the reactor's.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "plugin/net/net_send.h"
#include "plugin/transport/tcp/connector.h"
#include "plugin/transport/tcp/stream_set.h"

namespace riffle::net {

class Connecting {
 public:
  // Null: not connected yet.
  static Result<SendConnection*> poll(int device, Handle* handle);

  ~Connecting();

 private:
  Connecting(const HandleContent& to, const std::vector<NicAddress>& own);
  static Result<std::shared_ptr<Connecting>> find_or_begin(int device, Handle* handle);
  static void forget(Handle* handle);

  void begin(std::uint64_t id);
  static void drop_if_abandoned(std::uint64_t id);
  void watch(std::uint64_t id, std::uint64_t when_ns);
  void joined(std::uint16_t stream, Result<Fd> socket);

  const HandleContent to_;
  const std::vector<NicAddress> own_;
  const std::uint64_t deadline_ns_;
  const std::uint64_t patience_ns_;  // until a connect that nobody asks for counts as abandoned
  const std::uint64_t session_;
  const int streams_count_;
  const std::shared_ptr<Reactor> reactor_;
  const std::uint32_t generation_;
  std::vector<std::unique_ptr<Connector>> connectors_;
  StreamSet streams_;
  Status failure_;
  std::unique_ptr<SendConnection> connection_;
  std::atomic<bool> is_over_{false};  // publishes failure_ or connection_
  std::uint64_t last_asked_ns_ = 0;   // guarded by the table's lock
  std::uint64_t timer_ = 0;           // reactor thread
};

}  // namespace riffle::net
