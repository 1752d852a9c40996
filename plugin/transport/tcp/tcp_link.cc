#include "plugin/transport/tcp/tcp_link.h"

#include <algorithm>

#include "plugin/config/log.h"
#include "plugin/transport/base/caught.h"

namespace riffle {
namespace {

// What one stream may read before others get their turn.
constexpr std::size_t kReadBudgetBytes = 2 << 20;
constexpr std::uint64_t kLongestTickNs = 500'000'000;

std::string seconds(std::uint64_t ns) {
  std::string text = std::to_string(static_cast<double>(ns) / 1e9);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

std::shared_ptr<TcpLink> TcpLink::create(Reactor& reactor, std::vector<Connection> connections,
                                         TcpLinkOptions options, FrameSink* sink) {
  RIFFLE_CHECK(!connections.empty(), "a link needs a stream");
  std::shared_ptr<TcpLink> link(new TcpLink(reactor, std::move(options), sink));
  for (Connection& one : connections) {
    link->streams_.push_back(std::make_unique<Stream>(reactor, *link, std::move(one)));
  }
  link->schedule_tick();
  return link;
}

TcpLink::TcpLink(Reactor& reactor, TcpLinkOptions options, FrameSink* sink)
    : reactor_(reactor.shared_from_this()),
      timers_(&reactor, [this](const Status& why) { on_failure(why); }),
      options_(std::move(options)),
      sink_(sink) {}

TcpLink::~TcpLink() {
  shut_down();
  reactor_->forget(this);
}

void TcpLink::send(const FrameHeader& header, std::span<const std::byte> payload,
                   std::uint64_t cookie, std::uint64_t priority) {
  RIFFLE_CHECK(header.length == payload.size() && payload.size() <= kMaxFramePayload,
               "header.length is the size of the payload, within the limit");
  if (state_ != State::kUp) return;
  FrameHeader stamped = header;
  stamped.communicator = options_.communicator;
  if (options_.payload_crc) stamped.payload_crc = crc32c(payload.data(), payload.size());
  queue_.push(stamped, payload, cookie, priority);
  reactor_->wake(this);
}

void TcpLink::close() {
  if (state_ != State::kUp) return;
  const std::shared_ptr<TcpLink> self = shared_from_this();
  state_ = State::kClosing;
  sink_ = nullptr;
  for (const auto& stream : streams_) stream->start_discarding();
  catching([this] { drain(); },
           [this](const Status& why) {
             log_caught("closing a connection", why);
             shut_down();
           });
}

// Begins at once, not in the next turn: the process may be about to end.
void TcpLink::drain() {
  queue_.copy_payloads();
  for (const auto& stream : streams_) stream->copy_payloads();
  keep_alive_ = shared_from_this();
  write_all();
  settle();
  if (state_ == State::kClosing) drain_on();
}

void TcpLink::drain_on() {
  drained_to_ = bytes_sent();
  timers_.call_at(Reactor::now_ns() + options_.drain_ns, [this] {
    const std::shared_ptr<TcpLink> self = shared_from_this();
    const std::size_t left = undelivered_bytes();
    if (left > 0 && bytes_sent() > drained_to_) return drain_on();
    if (left > 0) {
      log_warn(
          "closing the connection to {}: it took nothing for {}, {} bytes were not "
          "delivered",
          options_.peer, seconds(options_.drain_ns), left);
    }
    shut_down();
  });
}

std::size_t TcpLink::undelivered_bytes() const {
  std::size_t sum = queue_.bytes();
  for (const auto& stream : streams_) sum += stream->bytes_to_send();
  return sum;
}

void TcpLink::abort() {
  sink_ = nullptr;
  shut_down();
}

void TcpLink::shut_down() {
  state_ = State::kDown;
  for (const auto& stream : streams_) stream->close();
  timers_.clear();
  const std::shared_ptr<TcpLink> last = std::move(keep_alive_);  // may be the last one
}

void TcpLink::fail(const Status& why) {
  if (state_ == State::kDown) return;
  FrameSink* const sink = sink_;
  abort();
  if (sink == nullptr) return;
  // The link is down, so the reactor would tell nothing of what is thrown here.
  catching(
      [&] {
        if (options_.on_lost) return options_.on_lost(why);
        sink->lost(options_.number, why);
      },
      [&](const Status& thrown) { sink->failed(thrown); });
}

void TcpLink::add(Connection connection, bool is_proven) {
  if (state_ != State::kUp || sink_ == nullptr || goodbyes_heard_ > 0) return;
  streams_.push_back(std::make_unique<Stream>(*reactor_, *this, std::move(connection), is_proven));
  streams_.back()->owes_heartbeat = is_proven;  // which proves it to the peer
  reactor_->wake(this);
}

// ---- service ----

void TcpLink::ready(Stream& stream) {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  serve(stream);
  settle();
}

void TcpLink::on_wake() {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  for (std::size_t i = 0; i < streams_.size() && is_up(); ++i) {
    if (streams_[i]->is_readable()) serve(*streams_[i]);
  }
  write_all();
  settle();
}

// What came may be half taken, so nothing more is read; what the owner has to say leaves.
void TcpLink::on_failure(const Status& why) {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  if (!is_up()) return;
  FrameSink* const sink = std::exchange(sink_, nullptr);
  if (sink == nullptr) return shut_down();
  for (const auto& stream : streams_) stream->start_discarding();
  sink->failed(why);
}

void TcpLink::serve(Stream& stream) {
  if (!is_up()) return;
  Status s = stream.read(kReadBudgetBytes);
  if (s && is_up()) s = stream.write();
  if (!s) return broke(stream, s);
  if (is_up() && stream.is_open() && stream.is_readable()) reactor_->wake(this);  // budget spent
}

// Frames that arrived on other streams may say why this one broke.
void TcpLink::broke(const Stream& stream, const Status& why) {
  for (const auto& other : streams_) {
    if (is_up() && other.get() != &stream && other->is_open()) (void)other->read_all();
  }
  fail(why);
}

// Offers the queue to all streams, beginning with another one each time.
void TcpLink::write_all() {
  const std::size_t count = streams_.size();
  const std::size_t first = first_stream_++ % count;
  for (std::size_t i = 0; i < count && is_up(); ++i) {
    Stream& stream = *streams_[(first + i) % count];
    if (const Status s = stream.write(); !s) return broke(stream, s);
  }
}

// Closing is complete when every stream said goodbye and heard the end. While the link is up, no
// stream is left only when the peer departed: what is queued goes nowhere and counts as sent.
void TcpLink::settle() {
  if (state_ == State::kUp && goodbyes_heard_ == streams_.size() &&
      std::none_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->is_open(); })) {
    while (TxFrame* const frame = is_up() ? queue_.pop() : nullptr) {
      frame_sent(*streams_.front(), frame);
    }
  }
  if (state_ != State::kClosing) return;
  if (std::all_of(streams_.begin(), streams_.end(),
                  [](const auto& s) { return s->is_finished() || !s->is_open(); })) {
    shut_down();
  }
}

// ---- what streams ask ----

TxFrame* TcpLink::next_frame(Stream& stream) {
  if (stream.said_goodbye() || !stream.is_proven()) return nullptr;
  TxFrame& own = stream.own_frame();
  if (stream.owes_heartbeat) {
    stream.owes_heartbeat = false;
    own.header = {.type = FrameType::kHeartbeat, .communicator = options_.communicator};
    return &own;
  }
  const bool is_in_use =
      in_use_ >= streams_.size() ||
      std::any_of(streams_.begin(), streams_.begin() + static_cast<std::ptrdiff_t>(in_use_),
                  [&](const auto& s) { return s.get() == &stream; });
  if (TxFrame* const frame = is_in_use ? queue_.pop() : nullptr) {
    frame->header.hints = hints_;
    return frame;
  }
  // Goodbye once no frame is on its way in this stream.
  if (state_ == State::kClosing && !stream.is_mid_frame()) {
    own.header = {.type = FrameType::kGoodbye, .communicator = options_.communicator};
    return &own;
  }
  return nullptr;
}

void TcpLink::frame_sent(Stream& stream, TxFrame* frame) {
  if (frame->is_own) {
    if (frame->header.type == FrameType::kGoodbye) stream.end_writing();
    return;
  }
  const std::uint64_t cookie = frame->cookie;
  queue_.recycle(frame);
  ++frames_sent_;
  if (sink_ != nullptr) sink_->sent(options_.number, cookie);
}

Result<std::byte*> TcpLink::get_receive_buffer(const FrameHeader& header) {
  if (header.communicator != options_.communicator) {
    return remote_error("it sent a frame of another communicator");
  }
  Result<std::byte*> at = sink_->get_receive_buffer(options_.number, header);
  RIFFLE_CHECK(!at || *at != nullptr || !is_up(), "get_receive_buffer() answers with an address");
  return at;
}

Status TcpLink::arrived(const FrameHeader& header, std::byte* payload) {
  if (options_.payload_crc && header.payload_crc != crc32c(payload, header.length)) {
    return remote_error("payload damaged (CRC32C does not match)");
  }
  ++frames_received_;
  hints_of_peer_ = header.hints;
  sink_->arrived(options_.number, header, payload);
  return Status::ok();
}

void TcpLink::goodbye_received() {
  if (++goodbyes_heard_ == streams_.size() && sink_ != nullptr) sink_->departed(options_.number);
}

// ---- time ----

std::uint64_t TcpLink::tick_period_ns() const {
  return std::min(options_.peer_timeout_ns / 8, kLongestTickNs);
}

void TcpLink::schedule_tick() {
  tick_due_ns_ = Reactor::now_ns() + tick_period_ns();
  timers_.call_at(tick_due_ns_, [this] { tick(); });
}

void TcpLink::forgive_own_absence(std::uint64_t now_ns) {
  const std::uint64_t late_ns = now_ns - std::min(now_ns, tick_due_ns_);
  if (late_ns < tick_period_ns()) return;
  for (const auto& stream : streams_) {
    stream->last_received_ns = std::min(now_ns, stream->last_received_ns + late_ns);
  }
}

Status TcpLink::check_alive(Stream& stream, std::uint64_t now_ns) {
  const auto is_silent = [&] {
    return stream.is_proven() && !stream.heard_goodbye() && state_ == State::kUp &&
           stream.last_received_ns + options_.peer_timeout_ns < now_ns;
  };
  if (!is_silent()) return Status::ok();
  // On a very slow link, what came may be less than the stream asked to be woken for.
  if (Status s = stream.read_all(); !s || !is_silent()) return s;
  return timeout_error("no sign of life for " + seconds(options_.peer_timeout_ns) +
                       " (RIFFLE_PEER_TIMEOUT)");
}

void TcpLink::tick() {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  const std::uint64_t now = Reactor::now_ns();
  forgive_own_absence(now);
  for (const auto& stream : streams_) {
    if (!stream->is_open()) continue;
    if (const Status alive = check_alive(*stream, now); !alive) return fail(alive);
    if (!is_up()) return;
    stream->owes_heartbeat = !stream->is_mid_frame() && !stream->said_goodbye() &&
                             now - stream->last_sent_ns > options_.peer_timeout_ns / 4;
  }
  write_all();
  settle();
  if (is_up()) schedule_tick();
}

// Streams share what there is to send, so the busiest one tells for how long the link was busy.
LinkActivity TcpLink::activity() {
  LinkActivity sum;
  std::uint64_t busiest_ns = 0;
  for (const auto& stream : streams_) {
    const Stream::Activity a = stream->activity();
    sum.out_bytes += a.delivered_bytes;
    busiest_ns = std::max(busiest_ns, a.busy_more_ns);
  }
  busy_ns_ += busiest_ns;
  sum.in_bytes = bytes_received();
  sum.busy_ns = busy_ns_;
  sum.of_peer = hints_of_peer_;
  return sum;
}

int TcpLink::hops() const { return hops_of(streams_.front()->socket()); }

void TcpLink::moved(std::size_t out_bytes, std::size_t in_bytes) {
  if (options_.traffic == nullptr) return;
  if (out_bytes > 0) options_.traffic->out.fetch_add(out_bytes, std::memory_order_relaxed);
  if (in_bytes > 0) options_.traffic->in.fetch_add(in_bytes, std::memory_order_relaxed);
}

std::uint64_t TcpLink::bytes_sent() const {
  std::uint64_t sum = 0;
  for (const auto& stream : streams_) sum += stream->bytes_sent;
  return sum;
}

std::uint64_t TcpLink::bytes_received() const {
  std::uint64_t sum = 0;
  for (const auto& stream : streams_) sum += stream->bytes_received;
  return sum;
}

LinkCounters TcpLink::counters() const {
  return {.bytes_sent = bytes_sent(),
          .bytes_received = bytes_received(),
          .frames_sent = frames_sent_,
          .frames_received = frames_received_};
}

std::optional<WireAccount> TcpLink::wire_account() const {
  std::optional<WireAccount> sum;
  for (const auto& stream : streams_) {
    const std::optional<WireAccount> one = tcp_account(stream->socket());
    if (!one) continue;
    if (!sum) sum.emplace();
    sum->delivered_bytes += one->delivered_bytes;
    sum->busy_us = std::max(sum->busy_us, one->busy_us);
    sum->unread_us = std::max(sum->unread_us, one->unread_us);
    sum->retransmits += one->retransmits;
    sum->rtt_us = sum->rtt_us == 0 ? one->rtt_us : std::min(sum->rtt_us, one->rtt_us);
  }
  return sum;
}

}  // namespace riffle
