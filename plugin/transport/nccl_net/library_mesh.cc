#include "plugin/transport/nccl_net/library_mesh.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/base/caught.h"
#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/nccl_net/exit_guard.h"
#include "plugin/transport/nccl_net/library_link.h"
#include "plugin/transport/nccl_net/slots.h"
#include "plugin/transport/reactor/reactor.h"
#include "plugin/transport/tcp/tcp_mesh.h"

namespace riffle::nccl_net {
namespace {

constexpr std::uint64_t kLongestTickNs = 500'000'000;
constexpr auto kLongestSettle = std::chrono::seconds(1);

// Of this process: closed meshes that still send.
struct Closing {
  std::mutex mutex;
  std::condition_variable changed;
  int meshes = 0;

  void add(int more) {
    const std::lock_guard lock(mutex);
    meshes += more;
    changed.notify_all();
  }
};
Closing& closing() {
  static Closing& all = *new Closing;  // outlives every thread
  return all;
}

// Messages to all of a session over TCP, as a library that is stuck must not keep its news.
bool goes_over_tcp(FrameType type) {
  return type == FrameType::kControl || type == FrameType::kFault;
}

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

// The mesh. It stays until what was sent has left, beyond its owner's handle on it (below).
class Core final : public FrameSink,
                   public LibraryLink::Owner,
                   public std::enable_shared_from_this<Core>,
                   Reactor::Poller,
                   Reactor::WakeHandler {
 public:
  Core(Reactor& reactor, LibraryPort port, int rank, int size, const MeshOptions& options,
       FrameSink* sink)
      : reactor_(reactor.shared_from_this()),
        port_(std::move(port)),
        slots_(size - 1, port_.net->wire.version),
        rank_(rank),
        options_(options),
        tick_ns_(std::min(options.peer_timeout_ns / 8, kLongestTickNs)),
        sink_(sink),
        timers_(reactor_.get(), [this](const Status& why) { failed(why); }) {}
  ~Core() override {
    let_go();
    reactor_->stop_polling(this);
    reactor_->forget(this);
  }

  void start(const TransportOptions& transport, TcpListener& listener,
             std::vector<HandleContent> handles) {
    for (std::size_t r = 0; r < handles.size(); ++r) {
      Peer& p = peers_.emplace_back();
      p.address = to_text(handles[r].endpoints.front());
      p.link = std::make_unique<LibraryLink>(
          *this, *port_.net, port_.context.get(),
          LibraryLinkOptions{.rank = rank_,
                             .number = static_cast<int>(r),
                             .peer = "node " + std::to_string(r) + " (" + p.address + ")",
                             .device = port_.device,
                             .communicator = handles.front().communicator,
                             .slots = slots_.of_each(),
                             .payload_crc = transport.payload_crc,
                             .peer_timeout_ns = options_.peer_timeout_ns});
    }
    TransportOptions control = transport;
    control.streams = 1;
    tcp_ = make_tcp_mesh(*reactor_, control, listener, std::move(handles), rank_, options_, this);
    schedule_tick();
  }

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(peers_.size()); }
  LibraryLink& link(int peer) { return *at(peer).link; }
  std::size_t descriptors_to_open() const { return tcp_->descriptors_to_open(); }

  void open(int peer) {
    RIFFLE_CHECK(peer >= 0 && peer < size() && peer != rank_, "no such peer");
    if (at(peer).deadline_ns == 0) {
      at(peer).deadline_ns = Reactor::now_ns() + options_.connect_timeout_ns;
    }
    tcp_->open(peer);
  }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) {
    if (goes_over_tcp(header.type)) {
      const auto* const bytes = reinterpret_cast<const char*>(payload.data());
      return tell(peer, header, {std::string(bytes, payload.size()), cookie}, priority);
    }
    link(peer).send(header, payload, cookie, priority);
    reactor_->wake(this);
  }
  void dismiss(int peer) {
    const LibraryUse use;
    if (use) link(peer).close(Reactor::now_ns());
    at(peer).is_dismissed = true;
    reactor_->wake(this);
  }
  void close() {
    const LibraryUse use;
    sink_ = nullptr;
    for (Peer& p : peers_) {
      if (use) p.link->close(Reactor::now_ns());
    }
    closing().add(1);
    self_ = shared_from_this();
    if (!end_if_over()) reactor_->start_polling(this);
  }
  void abort() {
    sink_ = nullptr;
    let_go();
  }

  // -- LibraryLink::Owner

  FrameSink* sink() override { return sink_; }
  void tell(int peer, const LibraryFrame& frame, std::string payload) override {
    const FrameHeader header = header_of(frame, payload.size());
    tell(peer, header, {std::move(payload), std::nullopt}, kUrgent);
  }
  void is_up(int peer) override {
    static std::once_flag first;
    std::call_once(first, guard_exit);
    if (sink_ != nullptr) sink_->opened(peer);
  }
  void has_departed(int peer) override {
    if (sink_ != nullptr) sink_->departed(peer);
  }
  void has_failed(int peer, const Status& why, bool tell_peer) override {
    if (tell_peer) {
      tell(peer, {LibraryFrame::kFailed, 0}, why.message().substr(0, kMostLibraryText));
    }
    end_tcp(peer);
    if (sink_ == nullptr) return;
    sink_->lost(peer, Status(why.code(), at(peer).address + ": " + why.message()));
  }

 private:
  void tell(int peer, const FrameHeader& header, Told told, std::uint64_t priority) {
    Peer& p = at(peer);
    if (!p.has_tcp) return;
    std::uint64_t number = 0;  // of those of which nothing has to be kept
    std::span<const std::byte> payload;
    if (!told.payload.empty() || told.cookie) {
      number = ++last_told_;
      payload = std::as_bytes(std::span((p.told[number] = std::move(told)).payload));
    }
    tcp_->send(peer, header, payload, number, priority);
  }
  // TCP has copied what is still to leave.
  void end_tcp(int peer) {
    tcp_->dismiss(peer);
    forget_told(at(peer));
  }
  static void forget_told(Peer& p) {
    p.has_tcp = false;
    p.told.clear();
  }
  Peer& at(int peer) { return peers_.at(static_cast<std::size_t>(peer)); }

  // -- FrameSink, of the mesh over TCP

  void opened(int peer) override {
    const LibraryUse use;
    if (!use) return;
    link(peer).start(Reactor::now_ns(), at(peer).deadline_ns);
    reactor_->start_polling(this);
  }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    Peer& p = at(peer);
    if (header.type == FrameType::kLibrary) {
      if (header.length > kLibraryHandleBytes + kMostLibraryText) {
        return remote_error("it sent a message about its library of " +
                            std::to_string(header.length) + " bytes");
      }
    } else if (is_wanted(p) && !p.link->peer_is_up() && is_wanted(p)) {
      return remote_error("it sends before its library is connected");
    }
    return p.arriving.emplace_back(header.length + 1u).data();
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    Peer& p = at(peer);
    const auto is_it = [&](const auto& one) { return one.data() == payload; };
    const auto found = std::ranges::find_if(p.arriving, is_it);
    const std::vector<std::byte> bytes = std::move(*found);
    p.arriving.erase(found);
    if (header.type != FrameType::kLibrary) return pass_on(peer, header, bytes);
    const LibraryUse use;
    if (!use) return;
    p.link->heard(frame_of<LibraryFrame>(header),
                  {reinterpret_cast<const char*>(bytes.data()), header.length});
    reactor_->start_polling(this);
  }
  void sent(int peer, std::uint64_t number) override {
    const auto told = at(peer).told.extract(number);
    if (told.empty() || !told.mapped().cookie) return;
    if (sink_ != nullptr && !at(peer).is_dismissed) sink_->sent(peer, *told.mapped().cookie);
  }
  void departed(int peer) override {
    const std::shared_ptr<Core> self = shared_from_this();
    const LibraryUse use;
    if (!use) return;
    take_rest(peer);
    link(peer).peer_is_gone();
  }
  void lost(int peer, const Status& why) override {
    const std::shared_ptr<Core> self = shared_from_this();
    bool is_news = false;
    {
      const LibraryUse use;
      if (use) take_rest(peer);
      is_news = is_wanted(at(peer));
      if (use) link(peer).abort();
    }
    forget_told(at(peer));
    if (is_news) sink_->lost(peer, why);
  }
  void take_rest(int peer) {
    guarded(at(peer), [&] { link(peer).take_rest(); });
  }
  void failed(const Status& why) override {
    if (sink_ != nullptr) sink_->failed(why);
  }
  // The owner's place is asked for only now: it may have gone while the payload came.
  void pass_on(int peer, const FrameHeader& header, std::span<const std::byte> payload) {
    const Peer& p = at(peer);
    if (!is_wanted(p)) return;
    const Result<std::byte*> to = sink_->get_receive_buffer(peer, header);
    if (!is_wanted(p)) return;
    if (!to) return refuse(peer, to.status());
    std::memcpy(*to, payload.data(), header.length);
    sink_->arrived(peer, header, *to);
  }
  void refuse(int peer, const Status& why) {
    {
      const LibraryUse use;
      if (use) link(peer).abort();
    }
    has_failed(peer, why, true);
  }
  bool is_wanted(const Peer& p) const {
    return sink_ != nullptr && !p.is_dismissed && !p.link->is_over();
  }

  // -- the reactor's turns

  void on_wake() override { reactor_->start_polling(this); }
  void on_failure(const Status& why) override { failed(why); }
  bool on_poll() override {
    const std::shared_ptr<Core> self = shared_from_this();
    const LibraryUse use;
    if (!use) return abandon();
    const std::uint64_t now = Reactor::now_ns();
    bool moved = false, is_active = false;
    std::size_t bytes = 0;
    for (Peer& p : peers_) {
      if (!p.link->is_active(now)) continue;
      guarded(p, [&] { moved |= p.link->poll(now); });
      if (!p.link->is_active(now)) continue;
      is_active = true;
      bytes += p.link->bytes_to_send();
    }
    keep_thread(bytes > Reactor::kPolledBytes);
    if (!end_if_over() && !is_active) reactor_->stop_polling(this);
    return moved;
  }
  // Time in which this process did not run is no fault of the peers'.
  void tick() {
    const std::shared_ptr<Core> self = shared_from_this();
    const std::uint64_t now = Reactor::now_ns();
    const std::uint64_t passed_ns = std::min(tick_ns_ + now - tick_due_ns_, 2 * tick_ns_);
    schedule_tick();
    const LibraryUse use;
    if (!use) return;
    for (Peer& p : peers_) {
      guarded(p, [&] { p.link->tick(passed_ns); });
    }
    (void)end_if_over();
  }
  void schedule_tick() {
    tick_due_ns_ = Reactor::now_ns() + tick_ns_;
    timers_.call_at(tick_due_ns_, [this] { tick(); });
  }
  // What is thrown leaves nothing certain of that link; the others go on until the owner ends them.
  template <class F>
  void guarded(Peer& p, F&& f) {
    catching(f, [&](const Status& why) {
      p.link->halt();
      log_caught("on a connection of the library", why);
      failed(why);
    });
  }
  void keep_thread(bool wants) {
    if (std::exchange(keeps_thread_, wants) != wants) reactor_->keep_thread(wants ? 1 : -1);
  }
  bool abandon() {
    reactor_->stop_polling(this);
    keep_thread(false);
    return false;
  }

  // Links that are dismissed end TCP, too, when they are over; and the mesh, where it is closed and
  // all are. True: it has ended.
  bool end_if_over() {
    bool is_over = true;
    for (int peer = 0; peer < size(); ++peer) {
      Peer& p = at(peer);
      if (p.link->is_closing()) {
        is_over = false;
      } else if (p.is_dismissed && !std::exchange(p.has_ended, true)) {
        end_tcp(peer);
      }
    }
    if (self_ == nullptr || !is_over) return false;
    tcp_->close();
    let_go();
    return true;
  }
  void let_go() {
    if (std::exchange(is_gone_, true)) return;
    {
      const LibraryUse use;
      for (Peer& p : peers_) {
        if (use) p.link->abort();
      }
    }
    if (tcp_ != nullptr) tcp_->abort();
    keep_thread(false);
    timers_.clear();
    const std::shared_ptr<Core> last = std::move(self_);
    if (last != nullptr) closing().add(-1);
  }

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
  std::shared_ptr<Core> self_;  // while it closes
};

class LibraryMesh final : public TransportMesh {
 public:
  explicit LibraryMesh(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~LibraryMesh() override {
    if (!is_closed_) core_->abort();
  }

  int rank() const override { return core_->rank(); }
  int size() const override { return core_->size(); }
  std::uint64_t now_ns() const override { return Reactor::now_ns(); }
  void open(int peer) override { core_->open(peer); }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie, std::uint64_t priority) override {
    core_->send(peer, header, payload, cookie, priority);
  }
  LinkActivity activity(int peer) override { return core_->link(peer).account().activity(); }
  void hint(int peer, RateHints hints) override { core_->link(peer).hint(hints); }
  void dismiss(int peer) override { core_->dismiss(peer); }
  void abort() override { core_->abort(); }
  void close() override {
    is_closed_ = true;
    core_->close();
  }
  LinkCounters counters(int peer) const override { return core_->link(peer).account().counters; }
  std::size_t descriptors_to_open() const override {  // the library's own are not known
    return core_->descriptors_to_open();
  }
  std::optional<WireAccount> wire_account(int peer) const override {
    const LibraryLink& link = core_->link(peer);
    if (!link.was_up()) return std::nullopt;
    return link.account().wire();
  }

 private:
  const std::shared_ptr<Core> core_;
  bool is_closed_ = false;
};

}  // namespace

std::unique_ptr<TransportMesh> make_library_mesh(Reactor& reactor,
                                                 const TransportOptions& transport,
                                                 const LibraryPort& port, TcpListener& listener,
                                                 std::vector<HandleContent> handles, int rank,
                                                 const MeshOptions& options, FrameSink* sink) {
  RIFFLE_CHECK(rank >= 0 && static_cast<std::size_t>(rank) < handles.size(), "rank out of range");
  const int size = static_cast<int>(handles.size());
  auto core = std::make_shared<Core>(reactor, port, rank, size, options, sink);
  core->start(transport, listener, std::move(handles));
  return std::make_unique<LibraryMesh>(std::move(core));
}

void wait_for_closing_meshes() {
  if (const LibraryUse use; !use) return;  // nothing moves any more, and a fork may have the lock
  Closing& all = closing();
  std::unique_lock lock(all.mutex);
  (void)all.changed.wait_for(lock, kLongestSettle, [&] { return all.meshes == 0; });
}

}  // namespace riffle::nccl_net
