// Connects one stream to a listener: TCP connect, then the connecting side of the handshake. Tries
// the ways to the listener's endpoints (routes.h) in turn, again and again with growing pauses,
// until the deadline. Reactor thread only.
#pragma once

#include <functional>
#include <vector>

#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/handshake/link_keys.h"
#include "plugin/transport/handshake/routes.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {

struct ConnectorOptions {
  HandleContent to;
  Hello hello;
  std::vector<NicAddress> own;    // addresses of this device (routes.h); may be empty
  std::uint64_t deadline_ns = 0;  // on Reactor::now_ns()
  std::string congestion = "auto";
  EncryptionOptions encryption;
};

class Connector final : public Reactor::FdHandler {
 public:
  // `done` is called once, from a later turn of the reactor, with the welcome stream or the reason
  // why there is none; it may destroy the connector.
  Connector(Reactor& reactor, ConnectorOptions options,
            std::function<void(Result<Connection>)> done);
  ~Connector() override;

  void on_ready(std::uint32_t epoll_events) override;
  void on_failure(const Status& why) override;

 private:
  enum class Step { kPause, kConnect, kChallenge, kWelcome };

  void attempt();
  void try_again(const std::string& why);
  void read_challenge();
  void read_welcome();
  bool receive(std::uint8_t* data, std::size_t size);
  void drop_socket();
  void set_timer(std::uint64_t when_ns);
  void on_timer();
  void finish(Result<Connection> result);
  const Route& route(std::size_t attempt) const { return routes_[attempt % routes_.size()]; }
  std::string target() const;

  Reactor& reactor_;
  const ConnectorOptions options_;
  const std::vector<Route> routes_;
  std::function<void(Result<Connection>)> done_;
  Step step_ = Step::kPause;
  Fd socket_;
  const Credentials credentials_;
  Locked<KeyPair> pair_;  // of this attempt; with encryption
  ChallengeBytes challenge_{};
  HelloBytes hello_{};
  WelcomeBytes welcome_{};
  std::size_t have_ = 0;
  std::size_t attempts_ = 0;
  int refusals_ = 0;
  std::uint64_t pause_ns_ = 0;
  OwnedTimers timers_;
  std::uint64_t timer_ = 0;
  std::string last_error_ = "no attempt was made";
};

}  // namespace riffle
