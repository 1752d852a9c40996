#include "plugin/transport/tcp/link_channel.h"

#include <utility>

#include "plugin/config/caught.h"
#include "plugin/config/log.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {

LinkChannel::LinkChannel(std::shared_ptr<TcpLink> link, ChannelOptions options, FrameSink* sink)
    : link_(std::move(link)),
      options_(std::move(options)),
      sink_(sink),
      state_(options_.on_joined ? State::kJoining : State::kUp) {}

// What a callback throws is this side's failure. The channel may be over when it returns.
template <class F>
void LinkChannel::guarded(F&& f) {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  catching(f, [this](const Status& why) { failed(why); });
}

// ---- for the owner ----

std::size_t LinkChannel::streams() const { return link_ != nullptr ? link_->streams() : 0; }

void LinkChannel::send(const FrameHeader& header, std::span<const std::byte> payload,
                       std::uint64_t cookie, std::uint64_t priority) {
  RIFFLE_CHECK(header.length == payload.size() && payload.size() <= kMaxFramePayload,
               "header.length is the size of the payload, within the limit");
  if (state_ != State::kUp) return;
  FrameHeader stamped = header;
  stamped.communicator = options_.communicator;
  if (link_->has_payload_crc()) stamped.payload_crc = crc32c(payload.data(), payload.size());
  queue_.push(stamped, payload, cookie, priority);
  link_->wake();
}

void LinkChannel::flush() {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  if (link_ != nullptr) link_->flush();
}

void LinkChannel::close() {
  if (!is_in_use()) return;
  sink_ = nullptr;
  const std::shared_ptr<TcpLink> link = link_;
  link->end(*this, state_ == State::kUp);
}

void LinkChannel::abort() {
  if (!is_in_use()) return;
  sink_ = nullptr;
  const std::shared_ptr<TcpLink> link = link_;
  link->end(*this, false);
}

LinkActivity LinkChannel::activity() {
  if (link_ != nullptr) link_->take_account();
  return {delivered_bytes_, counters_.bytes_received, busy_ns_, hints_of_peer_};
}

void LinkChannel::use_streams(std::size_t streams) {
  wanted_streams_ = streams;
  if (link_ != nullptr) link_->set_streams_in_use();
}

// ---- sending ----

TxFrame* LinkChannel::next_frame() {
  TxFrame* const frame = queue_.pop();
  if (frame == nullptr) return nullptr;
  frame->header.hints = hints_;
  frame->channel = this;
  ++frames_taken_;
  return frame;
}

void LinkChannel::frame_sent(TxFrame* frame) {
  const std::uint64_t cookie = frame->cookie;
  queue_.recycle(frame);
  ++counters_.frames_sent;
  if (sink_ != nullptr) return guarded([&] { sink_->sent(options_.number, cookie); });
  end_if_over();
}

void LinkChannel::moved(std::size_t out_bytes, std::size_t in_bytes) {
  counters_.bytes_sent += out_bytes;
  counters_.bytes_received += in_bytes;
  if (options_.traffic == nullptr) return;
  if (out_bytes > 0) options_.traffic->out.fetch_add(out_bytes, std::memory_order_relaxed);
  if (in_bytes > 0) options_.traffic->in.fetch_add(in_bytes, std::memory_order_relaxed);
}

// ---- receiving ----

Result<FramePlace> LinkChannel::place_for(const FrameHeader& header) {
  if (state_ == State::kJoining && options_.check_welcome) {
    return remote_error("it sent a frame of a communicator that has not joined");
  }
  if (has_left_) return remote_error("it sent a frame after it had left this communicator");
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  if (state_ == State::kJoining) open();
  if (sink_ == nullptr) return FramePlace{};
  Result<std::byte*> at = nullptr;
  catching(
      [&] {
        at = sink_->get_receive_buffer(options_.number, header);
        RIFFLE_CHECK(!at || *at != nullptr || sink_ == nullptr,
                     "get_receive_buffer() answers with an address");
      },
      [this](const Status& why) { failed(why); });
  if (sink_ == nullptr) return FramePlace{};  // it was ended within, or has failed
  if (at) return FramePlace{this, *at};
  if (link_->is_only(*this)) return at.status();
  lose(at.status());
  return FramePlace{};
}

void LinkChannel::arrived(const FrameHeader& header, std::byte* payload) {
  const std::shared_ptr<LinkChannel> self = left_ ? shared_from_this() : nullptr;
  ++counters_.frames_received;
  hints_of_peer_ = header.hints;
  if (payload != nullptr && sink_ != nullptr) {
    guarded([&] { sink_->arrived(options_.number, header, payload); });
  }
  if (self != nullptr) check_left();
}

// ---- joining ----

void LinkChannel::heard(const JoinFrame& frame) {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  if (frame.step == JoinFrame::kRefuse && state_ == State::kLeaving) {
    return heard(LeaveFrame{});  // it was never open there
  }
  if (state_ != State::kJoining) return;
  const bool has_asked = options_.check_welcome != nullptr;
  if (!has_asked) {
    if (frame.step == JoinFrame::kOpen) open();
  } else if (frame.step == JoinFrame::kRefuse) {
    const std::shared_ptr<TcpLink> link = link_;
    end();
    end_joining(remote_error("it refused"));
    link->close_if_unused();
  } else if (frame.step == JoinFrame::kWelcome) {
    if (const Status s = options_.check_welcome(frame); !s) {
      log_warn("{} answers for a communicator that it does not belong to: {}", options_.peer,
               s.message());
      link_->end(*this, false);
      return end_joining(s);
    }
    link_->send_own(JoinFrame{.step = JoinFrame::kOpen}, options_.communicator);
    open();
  }
}

void LinkChannel::open() {
  state_ = State::kUp;
  const auto joined = std::exchange(options_.on_joined, {});
  guarded([&] { joined(Status::ok()); });
}

void LinkChannel::end_joining(const Status& why) {
  const auto joined = std::exchange(options_.on_joined, {});
  sink_ = nullptr;
  if (joined) guarded([&] { joined(why); });
}

// ---- the end ----

void LinkChannel::heard(const LeaveFrame& frame) {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  if (left_) return;
  left_ = frame;
  if (state_ == State::kJoining && (options_.check_welcome || frame.never_open)) {
    link_->end(*this, false);
    end_joining(remote_error("it left"));
  } else if (state_ == State::kJoining) {
    open();
  }
  check_left();
}

void LinkChannel::check_left() {
  if (has_left_ || !left_ || counters_.frames_received < left_->frames) return;
  has_left_ = true;
  // Of frames that it began, and does not count, nothing more comes.
  if (link_ != nullptr) link_->forget(*this);
  end_if_over();
  if (state_ != State::kUp) return;
  if (left_->is_loss) {
    return lose(remote_error("it left this communicator without a goodbye (did it fail there?)"));
  }
  has_departed_ = true;
  if (sink_ != nullptr) guarded([&] { sink_->departed(options_.number); });
}

void LinkChannel::link_departed() {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  has_left_ = true;
  if (state_ == State::kJoining) {
    end();
    return end_joining(remote_error("it closed the connection"));
  }
  end_if_over();
  if (state_ != State::kUp || std::exchange(has_departed_, true)) return;
  if (sink_ != nullptr) guarded([&] { sink_->departed(options_.number); });
}

void LinkChannel::link_broke(const Status& why) {
  const State was = state_;
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  FrameSink* const sink = std::exchange(sink_, nullptr);
  const std::size_t left = undelivered_bytes();
  end();
  if (was == State::kJoining) return end_joining(why);
  if (was == State::kUp) return tell_lost(sink, why);
  if (!drains_ || left == 0) return;
  catching(
      [&] {
        log_warn("closing the connection to {}: it broke, {} bytes were not delivered",
                 options_.peer, left);
      },
      [](const Status&) {});
}

// This channel alone; the link goes on where it has others.
void LinkChannel::lose(const Status& why) {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  FrameSink* const sink = std::exchange(sink_, nullptr);
  const std::shared_ptr<TcpLink> link = link_;
  link->end(*this, false);
  tell_lost(sink, why);
}

// It is over, so that the reactor would tell nothing of what is thrown here.
void LinkChannel::tell_lost(FrameSink* sink, const Status& why) {
  if (sink == nullptr) return;
  catching(
      [&] {
        if (options_.on_lost) return options_.on_lost(why);
        sink->lost(options_.number, why);
      },
      [&](const Status& thrown) { sink->failed(thrown); });
}

void LinkChannel::failed(const Status& why) {
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  if (state_ == State::kJoining) {
    link_->end(*this, false);
    return end_joining(why);
  }
  FrameSink* const sink = std::exchange(sink_, nullptr);
  if (link_ != nullptr) link_->forget(*this);
  if (sink != nullptr) sink->failed(why);
}

LeaveFrame LinkChannel::leave(bool drains) {
  const bool never_open = state_ == State::kJoining;
  state_ = State::kLeaving;
  drains_ = drains;
  if (drains) {
    queue_.copy_payloads();
  } else {
    queue_.drop();
  }
  return {.is_loss = !drains, .never_open = never_open, .frames = frames_taken_ + queue_.size()};
}

void LinkChannel::end_if_over() {
  const bool is_drained = queue_.is_empty() && frames_taken_ == counters_.frames_sent;
  if (state_ == State::kLeaving && has_left_ && is_drained) end();
}

void LinkChannel::end() {
  if (state_ == State::kOver) return;
  const std::shared_ptr<LinkChannel> self = shared_from_this();
  state_ = State::kOver;
  std::exchange(link_, nullptr)->remove(*this);
}

}  // namespace riffle
