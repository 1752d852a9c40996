// How a link ends, and how a channel leaves one that goes on.
#include <algorithm>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/seconds_text.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

constexpr std::uint64_t kFirstLookNs = 500'000;
constexpr std::uint64_t kLongestLookNs = 16'000'000;

}  // namespace

void TcpLink::forget(const LinkChannel& channel) {
  for (const auto& stream : streams_) stream->forget(channel);
}

void TcpLink::end(LinkChannel& channel, bool drains) {
  const std::shared_ptr<TcpLink> self = shared_from_this();
  if (state_ == State::kDown) return channel.end();
  if (!drains && is_only(channel)) {
    shut_down();
    return end_all();
  }
  if (drains && channels_.in_use() == 1) return close();
  leave(channel, drains);  // sent in the link's turn, as other owners hear of that
  set_streams_in_use();
  close_if_unused();
}

void TcpLink::leave(LinkChannel& channel, bool drains) {
  forget(channel);
  catching(
      [&] {
        for (const auto& stream : streams_) stream->copy_payloads(&channel);
        send_own(channel.leave(drains), channel.communicator());
        channel.end_if_over();
      },
      [this](const Status& why) {
        log_caught("closing a connection", why);
        fail(why);
      });
}

void TcpLink::close_if_unused() {
  if (state_ == State::kUp && channels_.in_use() == 0) close();
}

void TcpLink::close() {
  if (state_ != State::kUp) return;
  const std::shared_ptr<TcpLink> self = shared_from_this();
  state_ = State::kClosing;
  stop_sharing();
  for (const auto& stream : streams_) stream->start_discarding();
  catching([this] { drain(); },
           [this](const Status& why) {
             log_caught("closing a connection", why);
             shut_down();
             end_all();
           });
}

// Begins at once, not in the next turn: the process may be about to end.
void TcpLink::drain() {
  const auto is_in_use = [](const LinkChannel& c) { return c.is_in_use(); };
  while (const auto channel = channels_.first(is_in_use)) {
    delivery_.emplace(channel->deliveries());
    (void)channel->leave(true);
  }
  for (const auto& stream : streams_) stream->copy_payloads(nullptr);
  keep_alive_ = shared_from_this();
  write_all();
  settle();
  if (state_ != State::kClosing) return;
  drain_on();
  watch_delivery(kFirstLookNs);
}

void TcpLink::drain_on() {
  left_ = undelivered_bytes();
  timers_.call_at(Reactor::now_ns() + options_.drain_ns, [this] {
    const std::shared_ptr<TcpLink> self = shared_from_this();
    const std::size_t left = undelivered_bytes();
    if (left > 0 && left < left_) return drain_on();
    if (left > 0) {
      log_warn(
          "closing the connection to {}: it took nothing for {}, {} bytes were not "
          "delivered",
          options_.peer, seconds_text(options_.drain_ns), left);
    }
    shut_down();
    end_all();
  });
}

// No event tells that the peer's machine has acknowledged everything. Where memory is short, the
// link's end ends the delivery.
void TcpLink::watch_delivery(std::uint64_t pause_ns) {
  catching(
      [&] {
        timers_.call_at(Reactor::now_ns() + pause_ns, [this, pause_ns] {
          if (is_delivered()) return delivery_.reset();
          watch_delivery(std::min(2 * pause_ns, kLongestLookNs));
        });
      },
      [](const Status&) {});
}

bool TcpLink::is_delivered() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& s) {
    return !s->is_open() || (s->said_goodbye() && s->bytes_unacknowledged() == 0);
  });
}

std::size_t TcpLink::undelivered_bytes() const {
  std::size_t sum = channels_.undelivered_bytes();
  for (const auto& stream : streams_) {
    sum += stream->bytes_to_send() + stream->bytes_unacknowledged();
  }
  return sum;
}

void TcpLink::shut_down() {
  state_ = State::kDown;
  stop_sharing();
  for (const auto& stream : streams_) stream->close();
  timers_.clear();
  clock_->remove(*this);
  delivery_.reset();
  const std::shared_ptr<TcpLink> last = std::move(keep_alive_);  // may be the last one
}

void TcpLink::end_all() {
  const auto any = [](const LinkChannel&) { return true; };
  while (const auto channel = channels_.first(any)) channel->end();
}

void TcpLink::fail(const Status& why) {
  if (state_ == State::kDown) return;
  const std::shared_ptr<TcpLink> self = shared_from_this();
  shut_down();
  for (const auto& stream : streams_) {
    stream->give_back([](TxFrame* frame) {
      if (frame->channel != nullptr) frame->channel->put_back(frame);
    });
  }
  // Those that the peer has left lose nothing: what they send goes nowhere, and counts as sent.
  const auto is_loss = [](const LinkChannel& c) { return !c.is_in_use() || !c.was_left(); };
  while (const auto channel = channels_.first(is_loss)) channel->link_broke(why);
  if (channels_.size() > 0) wake();
}

}  // namespace riffle
