#include "plugin/transport/tcp/tcp_link.h"

#include <algorithm>
#include <utility>

#include "plugin/transport/base/seconds_text.h"
#include "plugin/transport/crypto/keys.h"
#include "plugin/transport/tcp/tcp_account.h"

namespace riffle {
namespace {

// What one stream may read before others get their turn.
constexpr std::size_t kReadBudgetBytes = 2 << 20;
constexpr std::uint64_t kLongestTickNs = 500'000'000;
constexpr std::size_t kMostRefusals = 4 * SharedLinks::kMostWaiting;  // that wait to be sent

LinkMark mark_of_all(const std::vector<Connection>& connections) {
  Key sum{};
  for (const Connection& one : connections) {
    const Key before = sum;
    derive_key(before, "riffle link", {ByteView(one.mark)}, &sum);
  }
  LinkMark mark;
  std::copy_n(sum.begin(), mark.size(), mark.begin());
  return mark;
}

}  // namespace

std::shared_ptr<LinkChannel> TcpLink::create(Reactor& reactor, std::vector<Connection> connections,
                                             TcpLinkOptions options, ChannelOptions channel,
                                             FrameSink* sink) {
  RIFFLE_CHECK(!connections.empty(), "a link needs a stream");
  std::shared_ptr<TcpLink> link(new TcpLink(reactor, std::move(options)));
  link->mark_ = mark_of_all(connections);
  link->first_streams_ = link->asked_streams_ = connections.size();
  for (Connection& one : connections) {
    link->streams_.push_back(std::make_unique<Stream>(reactor, *link, std::move(one)));
  }
  link->clock_->add(*link, link->tick_period_ns());
  return link->attach(std::move(channel), sink);
}

TcpLink::TcpLink(Reactor& reactor, TcpLinkOptions options)
    : reactor_(reactor.shared_from_this()),
      clock_(LinkClock::of(reactor)),
      timers_(&reactor, [this](const Status& why) { on_failure(why); }),
      options_(std::move(options)) {}

TcpLink::~TcpLink() {
  shut_down();
  reactor_->forget(this);
}

// The link keeps its channels, which keep it: so what drops the pointer ends the channel.
std::shared_ptr<LinkChannel> TcpLink::attach(ChannelOptions options, FrameSink* sink) {
  auto channel = std::make_shared<LinkChannel>(shared_from_this(), std::move(options), sink);
  channels_.add(channel);
  LinkChannel* const raw = channel.get();
  return {raw, [kept = std::move(channel)](LinkChannel*) { kept->abort(); }};
}

void TcpLink::share(std::shared_ptr<SharedLinks> among, LinkTerms terms) {
  shared_ = std::move(among);
  terms_ = std::move(terms);
  shared_->add(*this);
  streams_.front()->owes_heartbeat = true;
  wake();
}

void TcpLink::stop_sharing() {
  if (const auto among = std::exchange(shared_, nullptr)) among->remove(*this);
}

bool TcpLink::is_joinable() const { return takes_streams() && is_heard_ && shared_ != nullptr; }

void TcpLink::add(Connection connection, bool is_proven) {
  if (!takes_streams()) return;
  streams_.push_back(std::make_unique<Stream>(*reactor_, *this, std::move(connection), is_proven));
  streams_.back()->owes_heartbeat = is_proven;  // which proves it to the peer
  reactor_->wake(this);
}

void TcpLink::set_streams_in_use() {
  if (channels_.in_use() > 0) in_use_ = channels_.wanted_streams();
}

// ---- service ----

void TcpLink::ready(Stream& stream) {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  serve(stream);
  settle();
}

void TcpLink::on_wake() {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  if (!is_up()) return channels_.count_as_sent();
  for (std::size_t i = 0; i < streams_.size() && is_up(); ++i) {
    if (streams_[i]->is_readable()) serve(*streams_[i]);
  }
  write_all();
  settle();
}

// The link's own work threw. What came may be half taken, so nothing more is read; what the owners
// have to say leaves.
void TcpLink::on_failure(const Status& why) {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  if (!is_up()) return;
  stop_sharing();
  if (channels_.in_use() == 0) {
    shut_down();
    return end_all();
  }
  for (const auto& stream : streams_) stream->start_discarding();
  const auto is_heard = [](const LinkChannel& c) { return c.is_heard(); };
  while (const auto channel = channels_.first(is_heard)) channel->failed(why);
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
  if (state_ == State::kUp && has_departed() &&
      std::none_of(streams_.begin(), streams_.end(), [](const auto& s) { return s->is_open(); })) {
    channels_.count_as_sent();
  }
  if (state_ != State::kClosing) return;
  if (std::all_of(streams_.begin(), streams_.end(),
                  [](const auto& s) { return s->is_finished() || !s->is_open(); })) {
    shut_down();
    end_all();
  }
}

// ---- what streams ask ----

TxFrame* TcpLink::next_frame(Stream& stream) {
  if (stream.said_goodbye() || !stream.is_proven()) return nullptr;
  TxFrame& own = stream.own_frame();
  if (stream.owes_heartbeat) {
    stream.owes_heartbeat = false;
    own.header = {.type = FrameType::kHeartbeat};
    return &own;
  }
  const bool is_in_use =
      in_use_ >= streams_.size() ||
      std::any_of(streams_.begin(), streams_.begin() + static_cast<std::ptrdiff_t>(in_use_),
                  [&](const auto& s) { return s.get() == &stream; });
  if (TxFrame* const frame = is_in_use ? channels_.next_frame() : nullptr) return frame;
  // Goodbye once no frame is on its way in this stream.
  if (state_ == State::kClosing && !stream.is_mid_frame()) {
    own.header = {.type = FrameType::kGoodbye};
    return &own;
  }
  return nullptr;
}

void TcpLink::frame_sent(Stream& stream, TxFrame* frame) {
  if (frame->is_own) {
    if (frame->header.type == FrameType::kGoodbye) stream.end_writing();
    return;
  }
  channels_.frame_sent(frame);
}

bool TcpLink::is_own(FrameType type) {
  return type == FrameType::kHeartbeat || type == FrameType::kGoodbye || type == FrameType::kJoin ||
         type == FrameType::kLeave;
}

Status TcpLink::heard(const FrameHeader& own_frame) {
  is_heard_ = true;
  if (own_frame.type == FrameType::kHeartbeat) return Status::ok();
  const std::uint64_t communicator = own_frame.communicator;
  LinkChannel* const channel = channels_.find(communicator);
  if (own_frame.type == FrameType::kLeave && channel != nullptr) {
    channel->heard(frame_of<LeaveFrame>(own_frame));
    return Status::ok();
  }
  if (own_frame.type == FrameType::kJoin) {
    const auto join = frame_of<JoinFrame>(own_frame);
    if (join.step != JoinFrame::kAsk) {
      if (channel != nullptr) channel->heard(join);
      return Status::ok();
    }
    if (channel == nullptr && is_joinable() && shared_->asked(*this, communicator, join)) {
      return Status::ok();
    }
  } else if (shared_ != nullptr) {
    shared_->withdrawn(*this, communicator);
  }
  if (channels_.refusals() >= kMostRefusals) {
    return remote_error("it asks to join this connection and does not read the answers");
  }
  send_own(JoinFrame{.step = JoinFrame::kRefuse}, communicator);
  return Status::ok();
}

Result<FramePlace> TcpLink::place_for(const FrameHeader& header) {
  is_heard_ = true;
  LinkChannel* const channel = channels_.find(header.communicator);
  if (channel == nullptr) return remote_error("it sent a frame of another communicator");
  return channel->place_for(header);
}

Status TcpLink::arrived(const FramePlace& place, const FrameHeader& header,
                        std::uint32_t payload_crc) {
  if (place.channel != nullptr && options_.payload_crc && header.payload_crc != payload_crc) {
    return remote_error("payload damaged (CRC32C does not match)");
  }
  LinkChannel* const channel =
      place.channel != nullptr ? place.channel : channels_.find(header.communicator);
  if (channel != nullptr) channel->arrived(header, place.at);
  return Status::ok();
}

void TcpLink::goodbye_received() {
  ++goodbyes_heard_;
  departed_if_over();
}

void TcpLink::never_used() {
  ++unused_;
  departed_if_over();
}

void TcpLink::departed_if_over() {
  if (!has_departed()) return;
  stop_sharing();
  const auto is_there = [](const LinkChannel& c) { return !c.has_left(); };
  while (const auto channel = channels_.first(is_there)) channel->link_departed();
  close_if_unused();
}

// ---- time ----

std::uint64_t TcpLink::tick_period_ns() const {
  return std::min(options_.peer_timeout_ns / 8, kLongestTickNs);
}

void TcpLink::forgive_own_absence(std::uint64_t now_ns) {
  const std::uint64_t late_ns = now_ns - std::min(now_ns, LinkClock::was_due_ns(*this));
  if (late_ns < tick_period_ns()) return;
  for (const auto& stream : streams_) {
    stream->last_received_ns = std::min(now_ns, stream->last_received_ns + late_ns);
  }
}

bool TcpLink::is_silent(const Stream& stream, std::uint64_t now_ns) const {
  return stream.is_proven() && !stream.heard_goodbye() && state_ == State::kUp &&
         stream.last_received_ns + options_.peer_timeout_ns < now_ns;
}

void TcpLink::tick() {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  const std::uint64_t now = Reactor::now_ns();
  forgive_own_absence(now);
  for (const auto& stream : streams_) {
    if (!stream->is_open()) continue;
    // What came may be less than the stream asked to be woken for. Found when the time is up, it
    // would count as a sign of life of then.
    if (stream->waits_for_more()) {
      if (const Status s = stream->read_unreported(kReadBudgetBytes); !s) return broke(*stream, s);
      if (!is_up()) return;
      if (stream->is_readable()) reactor_->wake(this);  // budget spent
    }
    if (is_silent(*stream, now)) {
      return fail(timeout_error("no sign of life for " + seconds_text(options_.peer_timeout_ns) +
                                " (RIFFLE_PEER_TIMEOUT)"));
    }
    stream->owes_heartbeat = !stream->is_mid_frame() && !stream->said_goodbye() &&
                             now - stream->last_sent_ns > options_.peer_timeout_ns / 4;
  }
  write_all();
  settle();
}

// Streams share what there is to send, so the busiest one tells for how long the link was busy.
void TcpLink::take_account() {
  std::uint64_t delivered_bytes = 0, busiest_ns = 0;
  for (const auto& stream : streams_) {
    const Stream::Activity a = stream->activity();
    delivered_bytes += a.delivered_bytes;
    busiest_ns = std::max(busiest_ns, a.busy_more_ns);
  }
  channels_.count_delivered(delivered_bytes - delivered_bytes_, busiest_ns);
  delivered_bytes_ = delivered_bytes;
}

int TcpLink::hops() const {
  return options_.is_accepted ? hops_of(streams_.front()->socket()) : -1;
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
