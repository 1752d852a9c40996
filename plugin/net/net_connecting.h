// Connecting: a connect() that is under way. NCCL calls connect() again and again with the same
// handle; the handle's scratch bytes hold a number under which the attempt is kept here, so that a
// mangled blob never becomes a pointer. An attempt that NCCL stopped asking for is dropped
// RIFFLE_CONNECT_TIMEOUT after its last question, whether or not others connect meanwhile.
//
// Threads: poll on the caller's; the rest on the reactor's.
#pragma once

#include <atomic>
#include <memory>

#include "plugin/net/net_send.h"
#include "plugin/transport/base/transport.h"

namespace riffle::net {

class Connecting : public std::enable_shared_from_this<Connecting> {
 public:
  // Null: not connected yet.
  static Result<SendConnection*> poll(const TransportOptions& transport, const NetOptions& options,
                                      int device, Handle* handle);

  ~Connecting();

 private:
  Connecting(const TransportOptions& transport, const NetOptions& options);
  static Result<std::shared_ptr<Connecting>> find(std::uint64_t id);
  static void forget(Handle* handle);

  static Result<std::shared_ptr<Connecting>> begin(const TransportOptions& transport,
                                                   const NetOptions& options, int device,
                                                   Handle* handle);
  Status start(const Transport& transport, const HandleContent& to, int device, Handle* handle);
  static void drop_if_abandoned(std::uint64_t id);
  void watch(std::uint64_t id, std::uint64_t when_ns);
  void linked(const Result<std::shared_ptr<Link>>& link);

  const std::uint64_t patience_ns_;  // until a connect that NCCL does not repeat is abandoned
  const std::size_t piece_bytes_;
  const std::shared_ptr<Reactor> reactor_;
  const std::uint32_t generation_;
  std::unique_ptr<PendingLink> pending_;
  Status failure_;
  std::unique_ptr<SendConnection> connection_;
  std::atomic<bool> is_over_{false};  // publishes failure_ or connection_
  std::uint64_t last_asked_ns_ = 0;   // guarded by the table's lock
  std::uint64_t timer_ = 0;           // reactor thread
};

}  // namespace riffle::net
