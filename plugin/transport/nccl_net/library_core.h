// The mesh over a library's connections (library_mesh.h): it stays until what was sent has left,
// beyond its owner's handle on it. Threads: one, the reactor's.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugin/config/caught.h"
#include "plugin/transport/base/deliveries.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/nccl_net/library_link.h"
#include "plugin/transport/nccl_net/library_mesh.h"
#include "plugin/transport/nccl_net/slots.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle::nccl_net {

class LibraryCore final : public FrameSink,
                          public LibraryLink::Owner,
                          public std::enable_shared_from_this<LibraryCore>,
                          Reactor::Poller,
                          Reactor::WakeHandler {
 public:
  LibraryCore(Reactor& reactor, LibraryPort port, int rank, int size, const MeshOptions& options,
              FrameSink* sink);
  ~LibraryCore() override;

  void start(const TransportOptions& transport, TcpListener& listener,
             std::vector<HandleContent> handles);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  LibraryLink& link(int peer) { return *at(peer).link; }
  std::size_t descriptors_to_open() const { return tcp_->descriptors_to_open(); }

  void open(int peer);
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority);
  void dismiss(int peer);
  void close();
  void abort();

  // -- LibraryLink::Owner

  FrameSink* sink() override { return sink_; }
  void tell(int peer, const LibraryFrame& frame, std::string payload) override;
  void is_up(int peer) override;
  void has_departed(int peer) override;
  void has_failed(int peer, const Status& why, bool tell_peer) override;

 private:
  // A frame on its way over TCP. Its payload is here, as TCP goes on after the owner has left.
  struct Told {
    std::string payload;
    std::optional<std::uint64_t> cookie;  // of the owner's; none: the mesh's own
  };

  struct Peer {
    std::string address;
    std::unique_ptr<LibraryLink> link;
    std::uint64_t deadline_ns = 0;  // for its connections; 0: not asked for
    bool is_dismissed = false;
    bool has_ended = false;  // dismissed, and over
    // Payloads on their way here over TCP, one for each of its streams at the most. They are the
    // mesh's own memory, as TCP goes on reading when the owner has left.
    std::list<std::vector<std::byte>> arriving;
    std::map<std::uint64_t, Told> told;  // by number; until they have left
    bool has_tcp = true;                 // what is told goes somewhere
  };

  void tell(int peer, const FrameHeader& header, Told told, std::uint64_t priority);
  // TCP has copied what is still to leave.
  void end_tcp(int peer);
  static void forget_told(Peer& p);
  Peer& at(int peer) { return peers_.at(static_cast<std::size_t>(peer)); }

  // -- FrameSink, of the mesh over TCP

  void opened(int peer) override;
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t number) override;
  void departed(int peer) override;
  void lost(int peer, const Status& why) override;
  void take_rest(int peer);
  void failed(const Status& why) override;
  // The owner's place is asked for only now: it may have gone while the payload came.
  void pass_on(int peer, const FrameHeader& header, std::span<const std::byte> payload);
  void refuse(int peer, const Status& why);
  bool is_wanted(const Peer& p) const;

  // -- the reactor's turns

  void on_wake() override { reactor_->start_polling(this); }
  void on_failure(const Status& why) override { failed(why); }
  bool on_poll() override;
  // Time in which this process did not run is no fault of the peers'.
  void tick();
  void schedule_tick();
  // What is thrown leaves nothing certain of that link; the others go on until the owner ends them.
  template <class F>
  void guarded(Peer& p, F&& f) {
    catching(f, [&](const Status& why) {
      p.link->halt();
      log_caught("on a connection of the library", why);
      failed(why);
    });
  }
  void keep_thread(bool wants);
  bool abandon();

  // Links that are dismissed end TCP, too, when they are over; and the mesh, where it is closed and
  // all are. True: it has ended.
  bool end_if_over();
  void let_go();

  const std::shared_ptr<Reactor> reactor_;
  const LibraryPort port_;
  const SlotGrant slots_;
  const int rank_;
  const MeshOptions options_;
  const std::uint64_t tick_ns_;
  FrameSink* sink_;
  OwnedTimers timers_;
  std::vector<Peer> peers_;  // never grows once the mesh has started
  std::unique_ptr<TransportMesh> tcp_;
  std::uint64_t last_told_ = 0;
  std::uint64_t tick_due_ns_ = 0;
  bool keeps_thread_ = false;
  bool is_gone_ = false;
  std::shared_ptr<LibraryCore> self_;        // while it closes
  std::optional<Deliveries::One> delivery_;  // then, too
};

}  // namespace riffle::nccl_net
