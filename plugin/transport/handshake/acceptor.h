// Accepts connections on listening sockets and lets in only peers that know the secret
// (handshake.h): those who come are heard on a thread for strangers (doors.h), and only who has
// proved that it knows the secret reaches the owner's.
//
// Reactor thread only. Its end waits for the thread for strangers, which waits for none, to end its
// turn.
#pragma once

#include <memory>
#include <vector>

#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/handshake/doors.h"
#include "plugin/transport/handshake/handshake.h"
#include "plugin/transport/handshake/link_keys.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

class Acceptor final : Reactor::WakeHandler {
 public:
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
  ~Acceptor() override;

  // False at the beginning; in force a moment later. Handshakes that run go on.
  void expect_peers(bool are_expected) { doors_->expect_peers(are_expected); }

 private:
  void on_wake() override;
  void on_failure(const Status& why) override { owner_->failed(why); }
  Result<Answer> judge(const Doors::Guest& guest) const;
  void welcome(Doors::Guest guest);

  Reactor& reactor_;
  const Credentials credentials_;
  Owner* const owner_;
  const std::shared_ptr<Reactor> strangers_;
  std::unique_ptr<Doors> doors_;
};

}  // namespace riffle
