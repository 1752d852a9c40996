// Listener: waits for the one sender that NCCL's bootstrap gave the handle to.
//
// Threads: open, accept and close on the caller's; the rest on the reactor's.
#pragma once

#include <atomic>
#include <memory>

#include "plugin/net/net_recv.h"
#include "plugin/transport/base/transport.h"

namespace riffle::net {

class Listener final {
 public:
  static Result<Listener*> open(const TransportOptions& options, int device, std::uint64_t comm_id,
                                Handle* handle);
  // Null: no sender is here yet.
  Result<RecvConnection*> accept();
  static void close(Listener* listener);

 private:
  Listener() = default;
  void linked(const Result<std::shared_ptr<Link>>& link);

  std::shared_ptr<Reactor> reactor_;
  std::uint32_t generation_ = 0;
  std::uint64_t timeout_ns_ = 0;
  std::uint64_t deadline_ns_ = 0;  // of accept, counted from its first call
  std::unique_ptr<PendingLink> pending_;
  Status failure_;  // published by has_failed_
  std::atomic<bool> has_failed_{false};
  std::atomic<RecvConnection*> ready_{nullptr};
  bool is_taken_ = false;  // ready_ was given away
};

}  // namespace riffle::net
