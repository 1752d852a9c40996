#include "plugin/transport/tcp/stream.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plugin/transport/reactor/kernel_version.h"
#include "plugin/transport/tcp/copy_forward.h"
#include "plugin/transport/tcp/tcp_account.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

constexpr std::size_t kLeastWakeBytes = 16 << 10;
constexpr std::size_t kMostWakeBytes = 256 << 10;

}  // namespace

Stream::Stream(Reactor& reactor, TcpLink& link, Connection connection, bool is_proven)
    : reactor_(reactor),
      link_(link),
      socket_(std::move(connection.socket)),
      is_proven_(is_proven),
      keys_(std::move(connection.keys)),
      staging_(kStagingBytes) {
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

// ---- sending ----

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
    bytes_sent += static_cast<std::uint64_t>(n);
    link_.moved(static_cast<std::size_t>(n), 0);
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
  sent_of_first_ += bytes;
  while (done_count < taken_count_) {
    const std::size_t size = wire_bytes(*taken_[done_count]);
    if (sent_of_first_ < size) break;
    sent_of_first_ -= size;
    taken_bytes_ -= size;
    done[done_count] = taken_[done_count];
    ++done_count;
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

void Stream::copy_payloads() {
  for (std::size_t i = 0; i < taken_count_; ++i) {
    TxFrame& f = *taken_[i];
    f.own_copy.assign(f.payload.begin(), f.payload.end());
    f.payload = f.own_copy;
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
  link_.goodbye_received();
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

// ---- receiving ----

Status Stream::read_all() {
  readable_ = true;
  return read(~std::size_t{0});
}

Status Stream::read(std::size_t read_budget) {
  if (Status s = read_available(read_budget); !s) return s;
  if (!readable_ && is_open()) wake_at(bytes_to_wake_at());
  return Status::ok();
}

std::size_t Stream::bytes_to_wake_at() const {
  if (!in_payload_) return 1;
  const std::size_t left = header_.length - payload_have_;
  return keys_ == nullptr ? left : sealed_payload_bytes(left) - staged_;
}

// Takes effect also for what has arrived meanwhile: the kernel then tells at once.
void Stream::wake_at(std::size_t bytes) {
  if (!kernel_wakes_at_low_water()) return;
  // Less than this is not worth the system call; more, the receive window may not hold.
  const std::size_t wanted = bytes < kLeastWakeBytes ? 1 : std::min(bytes, kMostWakeBytes);
  if (wanted == wakes_at_) return;
  wakes_at_ = wanted;
  const int value = static_cast<int>(wanted);
  (void)::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVLOWAT, &value, sizeof value);
}

Status Stream::read_available(std::size_t read_budget) {
  while (readable_ && read_budget > 0 && is_open()) {
    if (discarding_) return discard();
    std::size_t payload_left = in_payload_ ? header_.length - payload_have_ : 0;
    if (keys_ != nullptr) {
      payload_left = 0;
      if (next_record_bytes() > staging_.size()) staging_.resize(kSealedStagingBytes);
    }
    std::array<iovec, 2> pieces;
    std::size_t count = 0;
    if (payload_left > 0) pieces[count++] = {payload_ + payload_have_, payload_left};
    pieces[count++] = {staging_.data() + staged_, staging_.size() - staged_};
    const std::size_t wanted = payload_left + staging_.size() - staged_;
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t n = ::recvmsg(socket_.get(), &message, 0);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return on_broken("receiving", errno);
      readable_ = false;
      return Status::ok();
    }
    if (n == 0) {
      eof_ = true;
      if (heard_goodbye_) return Status::ok();
      if (!is_proven_) {
        close_unconfirmed();
        return Status::ok();
      }
      return remote_error("it closed the connection without a goodbye (did the process die?)");
    }
    const auto got = static_cast<std::size_t>(n);
    last_received_ns = Reactor::now_ns();
    bytes_received += got;
    link_.moved(0, got);
    if (keys_ == nullptr) is_proven_ = true;
    read_budget -= std::min(read_budget, got);
    if (got < wanted && !hung_up_) readable_ = false;
    const std::size_t to_payload = std::min(got, payload_left);
    payload_have_ += to_payload;
    staged_ += got - to_payload;
    if (keys_ != nullptr) {
      if (Status s = open_records(); !s) return s;
    } else {
      if (in_payload_ && payload_have_ == header_.length) {
        if (Status s = end_frame(); !s) return s;
      }
      if (Status s = digest_staging(); !s) return s;
    }
    if (!link_.is_up()) return Status::ok();
  }
  return Status::ok();
}

// Takes frames out of the staging buffer until it holds less than a header. Afterwards it is empty
// whenever the stream stands inside a payload.
Status Stream::digest_staging() {
  std::size_t at = 0;
  while (link_.is_up() && !discarding_) {
    if (in_payload_) {
      const std::size_t size = std::min<std::size_t>(staged_ - at, header_.length - payload_have_);
      copy_forward(payload_ + payload_have_, staging_.data() + at, size);
      payload_have_ += size;
      at += size;
      if (payload_have_ < header_.length) break;
      if (Status s = end_frame(); !s) return s;
      continue;
    }
    if (staged_ - at < kFrameHeaderBytes) break;
    FrameBytes bytes;
    std::memcpy(bytes.data(), staging_.data() + at, bytes.size());
    at += bytes.size();
    const Result<FrameHeader> header = decode(bytes);
    if (!header) return header.status();
    if (Status s = begin_frame(*header); !s) return s;
  }
  used(at);
  return Status::ok();
}

void Stream::used(std::size_t staged_bytes) {
  if (staged_bytes == 0) return;
  std::memmove(staging_.data(), staging_.data() + staged_bytes, staged_ - staged_bytes);
  staged_ -= staged_bytes;
}

Status Stream::begin_frame(const FrameHeader& header) {
  if (heard_goodbye_) return remote_error("it sent a frame after its goodbye");
  const bool is_ours = header.type == FrameType::kHeartbeat || header.type == FrameType::kGoodbye;
  if (is_ours) {
    if (header.length != 0) return remote_error("heartbeat or goodbye with a payload");
    if (header.type == FrameType::kGoodbye) {
      heard_goodbye_ = true;
      link_.goodbye_received();
    }
    return Status::ok();
  }
  const Result<std::byte*> buffer = link_.get_receive_buffer(header);
  if (!buffer) return buffer.status();
  if (!link_.is_up()) return Status::ok();
  header_ = header;
  payload_ = *buffer;
  payload_have_ = 0;
  in_payload_ = true;
  return Status::ok();
}

Status Stream::end_frame() {
  in_payload_ = false;
  return link_.arrived(header_, payload_);
}

// Goodbye was said here or is on its way: only the end of the stream is of interest.
Status Stream::discard() {
  std::array<std::byte, 16 << 10> waste;
  while (true) {
    const ssize_t n = ::recv(socket_.get(), waste.data(), waste.size(), 0);
    if (n > 0 && keys_ == nullptr) is_proven_ = true;
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    if (n == 0) eof_ = true;
    if (n == 0 && !is_proven_) said_goodbye_ = true;  // it would reach no peer
    if (n < 0 && errno != EAGAIN) return on_broken("closing", errno);
    readable_ = false;
    return Status::ok();
  }
}

}  // namespace riffle
