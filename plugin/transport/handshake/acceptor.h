// Accepts connections on listening sockets and lets in only peers that know the secret
// (handshake.h).
//
// Strangers cost little and keep no peer out. Doors are open only while the owner expects peers;
// what comes meanwhile waits in the kernel's queue, which is bounded, too. A turn of the reactor
// takes in at most kMostPerTurn. At most kMaxPending handshakes run at once, kMaxPendingOfOne with
// one address; what else comes from there is dropped at once, unheard (a peer tries again after a
// moment, connector.h). What fails, or takes longer than 5 s, is dropped, too. The log names
// address and reason, once a minute for each kind (stranger_log.h). The job goes on. Without a free
// descriptor it tries again until there is one; one line a minute says so for the whole process.
//
// Reactor thread only.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/handshake/handshake.h"
#include "plugin/transport/handshake/stranger_log.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

class Acceptor {
 public:
  static constexpr std::size_t kMaxPending = 256;
  static constexpr std::size_t kMaxPendingOfOne = 128;  // eight ranks of a node, 16 streams each
  static constexpr int kMostPerTurn = 64;
  static constexpr std::uint64_t kHandshakeTimeoutNs = 5'000'000'000;

  class Owner {
   public:
    virtual ~Owner() = default;
    // Is there a place for this stream? The HELLO is authentic. Not ok: dropped with that reason.
    virtual Status admit(const Hello& hello) = 0;
    // The stream is welcome and stands. The owner may destroy the acceptor here.
    virtual void joined(Connection connection, const Hello& hello) = 0;
    // The acceptor's own work threw (plugin/config/caught.h): it may accept nothing more.
    virtual void failed(const Status& /*why*/) {}
  };

  Acceptor(Reactor& reactor, std::vector<Fd> sockets, const HandleContent& content, Owner* owner,
           const EncryptionOptions& encryption = {});
  ~Acceptor();

  // True at the beginning. Handshakes that run go on.
  void expect_peers(bool are_expected);

 private:
  class Door;     // one listening socket
  class Visitor;  // one connection that has not proved anything yet

  void set_doors();
  void accept_waiting(int listener);
  void take_in(Fd socket, const SocketAddress& from);
  void finish(Visitor* visitor);

  Reactor& reactor_;
  const HandleContent content_;
  const Credentials credentials_;
  Owner* const owner_;
  bool are_expected_ = true;
  bool is_out_of_descriptors_ = false;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Visitor>> visitors_;
  OwnedTimers timers_;
  StrangerLog log_;
};

}  // namespace riffle
