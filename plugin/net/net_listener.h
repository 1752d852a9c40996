// Listener: waits for the one sender that NCCL's bootstrap gave the handle to.
//
// Threads: open, accept and close on the caller's; the rest on the reactor's.
#pragma once

#include <atomic>
#include <memory>

#include "plugin/net/net_recv.h"
#include "plugin/transport/tcp/acceptor.h"
#include "plugin/transport/tcp/stream_set.h"

namespace riffle::net {

class Listener final : private Acceptor::Owner {
 public:
  static Result<Listener*> open(int device, std::uint64_t comm_id, Handle* handle);
  // Null: nobody is here yet.
  Result<RecvConnection*> accept();
  static void close(Listener* listener);

 private:
  Listener() = default;
  Status admit(const Hello& hello) override;
  void joined(Fd socket, const Hello& hello) override;

  std::shared_ptr<Reactor> reactor_;
  std::uint32_t generation_ = 0;
  std::uint64_t communicator_ = 0;
  std::uint64_t deadline_ns_ = 0;  // of accept, counted from its first call
  std::unique_ptr<Acceptor> acceptor_;
  StreamSet streams_;
  std::atomic<RecvConnection*> ready_{nullptr};
  bool is_taken_ = false;  // ready_ was given away
};

}  // namespace riffle::net
