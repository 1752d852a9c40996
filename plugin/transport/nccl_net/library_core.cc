#include "plugin/transport/nccl_net/library_core.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/transport/nccl_net/exit_guard.h"
#include "plugin/transport/tcp/tcp_mesh.h"

namespace riffle::nccl_net {
namespace {

constexpr std::uint64_t kLongestTickNs = 500'000'000;

// Messages to all of a session over TCP, as a library that is stuck must not keep its news.
bool goes_over_tcp(FrameType type) {
  return type == FrameType::kControl || type == FrameType::kFault;
}

}  // namespace

LibraryCore::LibraryCore(Reactor& reactor, LibraryPort port, int rank, int size,
                         const MeshOptions& options, FrameSink* sink)
    : reactor_(reactor.shared_from_this()),
      port_(std::move(port)),
      slots_(size - 1, port_.net->wire.version),
      rank_(rank),
      options_(options),
      tick_ns_(std::min(options.peer_timeout_ns / 8, kLongestTickNs)),
      sink_(sink),
      timers_(reactor_.get(), [this](const Status& why) { failed(why); }) {}

LibraryCore::~LibraryCore() {
  let_go();
  reactor_->stop_polling(this);
  reactor_->forget(this);
}

void LibraryCore::start(const TransportOptions& transport, TcpListener& listener,
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

void LibraryCore::open(int peer) {
  RIFFLE_CHECK(peer >= 0 && peer < size() && peer != rank_, "no such peer");
  if (at(peer).deadline_ns == 0) {
    at(peer).deadline_ns = Reactor::now_ns() + options_.connect_timeout_ns;
  }
  tcp_->open(peer);
}

void LibraryCore::send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
                       std::uint64_t cookie, std::uint64_t priority) {
  if (goes_over_tcp(header.type)) {
    const auto* const bytes = reinterpret_cast<const char*>(payload.data());
    return tell(peer, header, {std::string(bytes, payload.size()), cookie}, priority);
  }
  link(peer).send(header, payload, cookie, priority);
  reactor_->wake(this);
}

void LibraryCore::dismiss(int peer) {
  const LibraryUse use;
  if (use) link(peer).close(Reactor::now_ns());
  at(peer).is_dismissed = true;
  reactor_->wake(this);
}

void LibraryCore::close() {
  if (is_gone_) return;
  const LibraryUse use;
  sink_ = nullptr;
  for (Peer& p : peers_) {
    if (use) p.link->close(Reactor::now_ns());
  }
  delivery_.emplace(options_.deliveries);
  self_ = shared_from_this();
  if (!end_if_over()) reactor_->start_polling(this);
}

void LibraryCore::abort() {
  sink_ = nullptr;
  let_go();
}

void LibraryCore::tell(int peer, const LibraryFrame& frame, std::string payload) {
  const FrameHeader header = header_of(frame, payload.size());
  tell(peer, header, {std::move(payload), std::nullopt}, kUrgent);
}

void LibraryCore::is_up(int peer) {
  static std::once_flag first;
  std::call_once(first, guard_exit);
  if (sink_ != nullptr) sink_->opened(peer);
}

void LibraryCore::has_departed(int peer) {
  if (sink_ != nullptr) sink_->departed(peer);
}

void LibraryCore::has_failed(int peer, const Status& why, bool tell_peer) {
  if (tell_peer) {
    tell(peer, {LibraryFrame::kFailed, 0}, why.message().substr(0, kMostLibraryText));
  }
  end_tcp(peer);
  if (sink_ == nullptr) return;
  sink_->lost(peer, Status(why.code(), at(peer).address + ": " + why.message()));
}

void LibraryCore::tell(int peer, const FrameHeader& header, Told told, std::uint64_t priority) {
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

void LibraryCore::end_tcp(int peer) {
  tcp_->dismiss(peer);
  forget_told(at(peer));
}

void LibraryCore::forget_told(Peer& p) {
  p.has_tcp = false;
  p.told.clear();
}

void LibraryCore::opened(int peer) {
  const LibraryUse use;
  if (!use) return;
  link(peer).start(Reactor::now_ns(), at(peer).deadline_ns);
  reactor_->start_polling(this);
}

Result<std::byte*> LibraryCore::get_receive_buffer(int peer, const FrameHeader& header) {
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

void LibraryCore::arrived(int peer, const FrameHeader& header, std::byte* payload) {
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

void LibraryCore::sent(int peer, std::uint64_t number) {
  const auto told = at(peer).told.extract(number);
  if (told.empty() || !told.mapped().cookie) return;
  if (sink_ != nullptr && !at(peer).is_dismissed) sink_->sent(peer, *told.mapped().cookie);
}

void LibraryCore::departed(int peer) {
  const std::shared_ptr<LibraryCore> self = shared_from_this();
  const LibraryUse use;
  if (!use) return;
  take_rest(peer);
  link(peer).peer_is_gone();
}

void LibraryCore::lost(int peer, const Status& why) {
  const std::shared_ptr<LibraryCore> self = shared_from_this();
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

void LibraryCore::take_rest(int peer) {
  guarded(at(peer), [&] { link(peer).take_rest(); });
}

void LibraryCore::failed(const Status& why) {
  if (sink_ != nullptr) sink_->failed(why);
}

void LibraryCore::pass_on(int peer, const FrameHeader& header, std::span<const std::byte> payload) {
  const Peer& p = at(peer);
  if (!is_wanted(p)) return;
  const Result<std::byte*> to = sink_->get_receive_buffer(peer, header);
  if (!is_wanted(p)) return;
  if (!to) return refuse(peer, to.status());
  std::memcpy(*to, payload.data(), header.length);
  sink_->arrived(peer, header, *to);
}

void LibraryCore::refuse(int peer, const Status& why) {
  {
    const LibraryUse use;
    if (use) link(peer).abort();
  }
  has_failed(peer, why, true);
}

bool LibraryCore::is_wanted(const Peer& p) const {
  return sink_ != nullptr && !p.is_dismissed && !p.link->is_over();
}

bool LibraryCore::on_poll() {
  const std::shared_ptr<LibraryCore> self = shared_from_this();
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
  keep_thread(bytes > reactor_->polling().bytes);
  if (!end_if_over() && !is_active) reactor_->stop_polling(this);
  return moved;
}

void LibraryCore::tick() {
  const std::shared_ptr<LibraryCore> self = shared_from_this();
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

void LibraryCore::schedule_tick() {
  tick_due_ns_ = Reactor::now_ns() + tick_ns_;
  timers_.call_at(tick_due_ns_, [this] { tick(); });
}

void LibraryCore::keep_thread(bool wants) {
  if (std::exchange(keeps_thread_, wants) != wants) reactor_->keep_thread(wants ? 1 : -1);
}

bool LibraryCore::abandon() {
  reactor_->stop_polling(this);
  keep_thread(false);
  delivery_.reset();
  return false;
}

bool LibraryCore::end_if_over() {
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

void LibraryCore::let_go() {
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
  delivery_.reset();
  const std::shared_ptr<LibraryCore> last = std::move(self_);  // may be the last one
}

}  // namespace riffle::nccl_net
