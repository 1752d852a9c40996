#include "plugin/transport/tcp/stream.h"

#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "plugin/transport/tcp/tcp_account.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
Stream::Stream(Reactor& reactor, TcpLink& link, Connection connection, bool is_proven)
    : reactor_(reactor),
      link_(link),
      socket_(std::move(connection.socket)),
      is_proven_(is_proven),
      keys_(std::move(connection.keys)),
      staging_(keys_ == nullptr ? kFrameHeaderBytes : kLeastStagingBytes) {
  own_frame_.is_own = true;
  last_sent_ns = last_received_ns = Reactor::now_ns();
  reactor_.add(socket_.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, this);
}

Stream::~Stream() { close(); }

void Stream::close() {
  if (socket_.is_open()) reactor_.remove(socket_.get());
  socket_.reset();
}

void Stream::on_ready(std::uint32_t epoll_events) {
  if (epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (epoll_events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) hung_up_ = true;
  link_.ready(*this);
}

void Stream::on_failure(const Status& why) { link_.on_failure(why); }

std::size_t Stream::wire_bytes(const TxFrame& frame) const {
  const std::size_t payload = frame.payload.size();
  return keys_ == nullptr ? kFrameHeaderBytes + payload : sealed_frame_bytes(payload);
}

void Stream::take_frames() {
  while (taken_count_ < kMaxTaken && taken_bytes_ < kBatchBytes) {
    TxFrame* const frame = link_.next_frame(*this);
    if (frame == nullptr) return;
    frame->wire = encode(frame->header);
    taken_[taken_count_++] = frame;
    taken_bytes_ += wire_bytes(*frame);
  }
}

std::size_t Stream::pieces_to_send(Pieces& pieces) {
  std::size_t count = 0;
  if (keys_ != nullptr) {
    const auto sealed = outbox_.fill({taken_.data(), taken_count_}, keys_->out);
    pieces[count++] = {const_cast<std::byte*>(sealed.data()), sealed.size()};
    return count;
  }
  std::size_t skip = sent_of_first_;
  for (std::size_t i = 0; i < taken_count_; ++i, skip = 0) {
    TxFrame& f = *taken_[i];
    const std::size_t of_header = std::min(skip, kFrameHeaderBytes);
    const std::size_t of_payload = skip - of_header;
    if (of_header < kFrameHeaderBytes) {
      pieces[count++] = {f.wire.data() + of_header, kFrameHeaderBytes - of_header};
    }
    if (of_payload < f.payload.size()) {
      pieces[count++] = {const_cast<std::byte*>(f.payload.data()) + of_payload,
                         f.payload.size() - of_payload};
    }
  }
  return count;
}

Status Stream::write() {
  while (writable_ && is_open()) {
    take_frames();
    if (taken_count_ == 0) return Status::ok();
    Pieces pieces;
    const std::size_t count = pieces_to_send(pieces);
    std::size_t wanted = 0;
    for (std::size_t i = 0; i < count; ++i) wanted += pieces[i].iov_len;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return drain_receive(errno);
      writable_ = false;
      return Status::ok();
    }
    last_sent_ns = Reactor::now_ns();
    // A short write means that the kernel is full and will tell when it is not.
    if (static_cast<std::size_t>(n) < wanted) writable_ = false;
    release_sent(static_cast<std::size_t>(n));
  }
  return Status::ok();
}

// The peer is gone, but what it sent before it went may say why (another node's fault): read that
// first, so that the first cause is the one that is reported.
Status Stream::drain_receive(int error) {
  writable_ = false;
  if (Status s = read_all(); !s) return s;
  return link_.is_up() ? on_broken("sending", error) : Status::ok();
}

void Stream::release_sent(std::size_t bytes) {
  std::array<TxFrame*, kMaxTaken> done;
  std::size_t done_count = 0;
  std::size_t left = bytes;
  while (done_count < taken_count_) {
    TxFrame* const frame = taken_[done_count];
    const std::size_t size = wire_bytes(*frame);
    const std::size_t of_frame = std::min(left, size - sent_of_first_);
    link_.moved(frame->channel, of_frame, 0);
    left -= of_frame;
    sent_of_first_ += of_frame;
    if (sent_of_first_ < size) break;
    sent_of_first_ = 0;
    taken_bytes_ -= size;
    done[done_count++] = frame;
  }
  std::copy(taken_.begin() + done_count, taken_.begin() + taken_count_, taken_.begin());
  taken_count_ -= done_count;
  if (keys_ != nullptr) outbox_.took(bytes, done_count);
  for (std::size_t i = 0; i < done_count && link_.is_up(); ++i) link_.frame_sent(*this, done[i]);
}

void Stream::end_writing() {
  said_goodbye_ = true;
  (void)::shutdown(socket_.get(), SHUT_WR);
}

void Stream::copy_payloads(const LinkChannel* of) {
  for (std::size_t i = 0; i < taken_count_; ++i) {
    TxFrame& f = *taken_[i];
    if (of == nullptr || f.channel == of) keep_payload(f);
  }
}

// A connection that breaks after the peer's goodbye did its duty: the peer would only
// have thrown away what is still to be sent.
Status Stream::on_broken(const char* doing, int error) {
  if (!is_proven_) {
    close_unconfirmed();
    return Status::ok();
  }
  if (heard_goodbye_ || discarding_) {
    eof_ = said_goodbye_ = true;
    writable_ = readable_ = false;
    close();
    release_sent(bytes_to_send());
    return Status::ok();
  }
  return remote_error(std::string("connection broke while ") + doing + ": " + errno_text(error));
}

// The peer never used it: it left before it knew that the connection stands.
void Stream::close_unconfirmed() {
  eof_ = said_goodbye_ = heard_goodbye_ = true;
  writable_ = readable_ = false;
  close();
  link_.never_used();
}

std::size_t Stream::bytes_unacknowledged() const {
  int bytes = 0;
  if (!is_open() || ::ioctl(socket_.get(), SIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<std::size_t>(std::max(bytes, 0));
}

Stream::Activity Stream::activity() {
  const auto account = is_open() ? tcp_account(socket_.get()) : std::nullopt;
  if (!account) return {delivered_bytes_, 0};
  // Neither goes backwards, whatever the kernel's counters do to each other.
  const std::uint64_t busy_us = account->busy_us - std::min(account->busy_us, account->unread_us);
  const std::uint64_t more_us = busy_us - std::min(busy_us, busy_us_);
  busy_us_ += more_us;
  delivered_bytes_ = std::max(delivered_bytes_, account->delivered_bytes);
  return {delivered_bytes_, more_us * 1000};
}

}  // namespace riffle
