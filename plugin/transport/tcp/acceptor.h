// Accepts connections on listening sockets and lets in only peers that know the secret
// (handshake.h).
//
// Any other connection, and one that takes longer than 5 s, is dropped with one log line that gives
// its address and the reason; the job goes on. At most kMaxPending handshakes run at once; further
// connections wait in the kernel's queue. Reactor thread only.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/reactor/socket.h"
#include "plugin/transport/tcp/connection.h"
#include "plugin/transport/tcp/handshake.h"

namespace riffle {

class Acceptor {
 public:
  static constexpr std::size_t kMaxPending = 256;
  static constexpr std::uint64_t kHandshakeTimeoutNs = 5'000'000'000;

  class Owner {
   public:
    virtual ~Owner() = default;
    // Is there a place for this stream? The HELLO is authentic. Not ok: dropped with that reason.
    virtual Status admit(const Hello& hello) = 0;
    // The stream is welcome and stands. The owner may destroy the acceptor here.
    virtual void joined(Connection connection, const Hello& hello) = 0;
    // The acceptor's own work threw (base/caught.h): it may accept nothing more.
    virtual void failed(const Status& /*why*/) {}
  };

  Acceptor(Reactor& reactor, std::vector<Fd> sockets, const HandleContent& content, Owner* owner,
           const EncryptionOptions& encryption = {});
  ~Acceptor();

 private:
  class Door;     // one listening socket
  class Visitor;  // one connection that has not proved anything yet

  void open_doors();
  void close_doors();
  void accept_waiting(int listener);
  void finish(Visitor* visitor);

  Reactor& reactor_;
  const HandleContent content_;
  const Credentials credentials_;
  Owner* const owner_;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Visitor>> visitors_;
  OwnedTimers timers_;
};

}  // namespace riffle
