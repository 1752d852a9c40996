// Doors: listening sockets and those who come, until they have said who they are (handshake.h). All
// of it runs on a thread for strangers, which all listeners of the process share, so that a flood
// of them, and the log's lines about it, take no time from the threads that carry data.
//
// Strangers cost little and keep no peer out. Doors are open only while peers are expected; what
// comes meanwhile waits in the kernel's queue, which is bounded, too. A turn of the thread takes in
// at most kMostPerTurn. At most kMaxPending are heard at once, kMaxPendingOfOne of one address;
// what else comes from there is dropped at once, unheard (a peer tries again after a moment,
// connector.h). What fails, or takes longer than 5 s, is dropped, too. The log names address and
// reason, once a minute for each kind (stranger_log.h). The job goes on. Without a free descriptor
// it tries again until there is one; one line a minute says so for the whole process.
//
// Threads: made anywhere; destroyed on the thread for strangers. Public calls: any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/handshake/handshake.h"
#include "plugin/transport/handshake/stranger_log.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

class Doors final : Reactor::WakeHandler {
 public:
  static constexpr std::size_t kMaxPending = 256;
  static constexpr std::size_t kMaxPendingOfOne = 128;  // eight ranks of a node, 16 streams each
  static constexpr int kMostPerTurn = 64;
  static constexpr std::uint64_t kHandshakeTimeoutNs = 5'000'000'000;

  // Who knows the secret and belongs to the communicator; the answer is the owner's.
  struct Guest {
    Fd socket;
    SocketAddress from;
    ChallengeBytes challenge{};
    HelloBytes said{};
    Hello hello;
  };

  // `host` and its handler are woken for guests and failures. They and the credentials outlive it.
  Doors(Reactor& strangers, std::vector<Fd> sockets, std::uint64_t communicator,
        const Credentials& credentials, Reactor& host, Reactor::WakeHandler* handler);
  ~Doors() override;

  // False at the beginning; in force with the thread's next turn. Who is being heard is heard out.
  void expect_peers(bool are_expected);
  // Who came first, and are there more?
  std::optional<Guest> next_guest(bool* are_more);
  // Not ok, once: its own work threw (base/caught.h), and it takes in nothing more.
  Status take_failure();
  // The owner had no place for a guest.
  void turned_away(Stranger kind, const SocketAddress& from, const std::string& why);

 private:
  class Door;     // one listening socket
  class Visitor;  // one connection that has not proved anything yet
  struct Refusal {
    Stranger kind;
    SocketAddress from;
    std::string why;
  };

  void on_wake() override;
  void on_failure(const Status& why) override { failed(why); }
  void set_doors();
  void accept_waiting(int listener);
  void take_in(Fd socket, const SocketAddress& from);
  void let_in(Guest guest);
  void tell_refusals();
  void finish(Visitor* visitor);
  void failed(const Status& why);

  Reactor& strangers_;
  Reactor& host_;
  Reactor::WakeHandler* const handler_;
  const std::uint64_t communicator_;
  const Credentials& credentials_;
  std::atomic<bool> are_expected_{false};
  bool is_out_of_descriptors_ = false;
  std::vector<std::unique_ptr<Door>> doors_;
  std::vector<std::unique_ptr<Visitor>> visitors_;
  OwnedTimers timers_;
  StrangerLog log_;

  std::mutex mutex_;
  std::vector<Guest> guests_;      // guarded by mutex_
  std::vector<Refusal> refusals_;  // guarded by mutex_
  Status failure_;                 // guarded by mutex_
};

}  // namespace riffle
