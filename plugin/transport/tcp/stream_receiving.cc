// What a stream receives: staging, frames, payloads in place.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "plugin/transport/reactor/kernel_version.h"
#include "plugin/transport/tcp/copy_forward.h"
#include "plugin/transport/tcp/stream.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

constexpr std::size_t kLeastWakeBytes = 16 << 10;
constexpr std::size_t kMostWakeBytes = 256 << 10;
constexpr std::size_t kWasteBytes = 16 << 10;  // thrown away by one system call
// Copying up to so much costs less than a system call of its own.
constexpr std::size_t kSmallPayloadBytes = 4 << 10;

}  // namespace

Status Stream::read_unreported(std::size_t read_budget) {
  readable_ = true;
  return read(read_budget);
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

// What ends the link within a callback may come back here: then what is staged has its turn.
Status Stream::read_available(std::size_t read_budget) {
  if (is_reading_) return Status::ok();
  std::array<std::byte, kMostStagingBytes> on_stack;
  while (readable_ && read_budget > 0 && is_open()) {
    if (discarding_) return discard();
    std::size_t payload_left = in_payload_ ? header_.length - payload_have_ : 0;
    if (keys_ != nullptr) {
      payload_left = 0;
      if (next_record_bytes() > staging_.size()) staging_.resize(kSealedStagingBytes);
    } else {
      std::copy_n(staging_.begin(), staged_, on_stack.begin());
    }
    const auto staging = keys_ != nullptr ? std::span(staging_)
                                          : std::span<std::byte>(on_stack).first(staging_bytes_);
    std::array<std::byte, kWasteBytes> waste;
    std::array<iovec, 2> pieces;
    std::size_t count = 0;
    std::size_t direct = payload_left;
    if (place_.channel == nullptr) direct = std::min(direct, waste.size());
    if (direct > 0) {
      pieces[count++] = {place_.channel != nullptr ? place_.at + payload_have_ : waste.data(),
                         direct};
    }
    const std::size_t behind = direct == payload_left ? staging.size() - staged_ : 0;
    if (behind > 0) pieces[count++] = {staging.data() + staged_, behind};
    const std::size_t wanted = direct + behind;
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
    if (keys_ == nullptr) is_proven_ = true;
    read_budget -= std::min(read_budget, got);
    if (got < wanted && !hung_up_) readable_ = false;
    const std::size_t to_payload = std::min(got, direct);
    if (to_payload > 0)
      count_payload(static_cast<const std::byte*>(pieces[0].iov_base), to_payload);
    staged_ += got - to_payload;
    // More where it was full, until a large payload is among what it holds.
    if (got == wanted) staging_bytes_ = std::min(2 * staging_bytes_, kMostStagingBytes);
    if (Status s = digest_what_came(staging); !s) return s;
    if (!link_.is_up()) return Status::ok();
  }
  return Status::ok();
}

Status Stream::digest_what_came(std::span<std::byte> staging) {
  struct Guard {
    bool& is_reading;
    ~Guard() { is_reading = false; }
  } const guard{is_reading_};
  is_reading_ = true;
  return keys_ != nullptr ? open_records() : digest(staging.first(std::exchange(staged_, 0)));
}

// Takes frames out of what is staged until less than a header is left. Afterwards nothing is
// whenever the stream stands inside a payload.
Status Stream::digest(std::span<const std::byte> staged) {
  if (in_payload_ && payload_have_ == header_.length) {
    if (Status s = end_frame(); !s) return s;
  }
  while (link_.is_up() && !discarding_) {
    if (in_payload_) {
      const std::size_t size = std::min<std::size_t>(staged.size(), header_.length - payload_have_);
      take_payload(staged.data(), size);
      staged = staged.subspan(size);
      if (payload_have_ < header_.length) break;
      if (Status s = end_frame(); !s) return s;
      continue;
    }
    if (staged.size() < kFrameHeaderBytes) break;
    FrameBytes bytes;
    std::memcpy(bytes.data(), staged.data(), bytes.size());
    staged = staged.subspan(bytes.size());
    const Result<FrameHeader> header = decode(bytes);
    if (!header) return header.status();
    if (Status s = begin_frame(*header); !s) return s;
  }
  keep_rest(staged);
  return Status::ok();
}

// Of a link that is over, or throws away what comes, more than there is room for may be left.
void Stream::keep_rest(std::span<const std::byte> rest) {
  staged_ = rest.size() <= staging_.size() ? rest.size() : 0;
  if (staged_ > 0) std::memmove(staging_.data(), rest.data(), staged_);
}

void Stream::take_payload(const std::byte* from, std::size_t size) {
  if (place_.channel != nullptr && header_.type == FrameType::kMessage) {
    copy_forward(place_.at + payload_have_, from, size);
  } else if (place_.channel != nullptr) {
    std::memcpy(place_.at + payload_have_, from, size);
  }
  count_payload(from, size);
}

void Stream::count_payload(const std::byte* from, std::size_t size) {
  if (link_.has_payload_crc()) payload_crc_ = crc32c(from, size, payload_crc_);
  payload_have_ += size;
  link_.moved(place_.channel, 0, size);
}

Status Stream::begin_frame(const FrameHeader& header) {
  if (heard_goodbye_) return remote_error("it sent a frame after its goodbye");
  if (link_.is_own(header.type)) {
    if (header.length != 0) return remote_error("a frame of the connection's with a payload");
    if (header.type == FrameType::kGoodbye) {
      heard_goodbye_ = true;
      link_.goodbye_received();
      return Status::ok();
    }
    return link_.heard(header);
  }
  const Result<FramePlace> place = link_.place_for(header);
  if (!place) return place.status();
  if (!link_.is_up()) return Status::ok();
  if (header.length > kSmallPayloadBytes) staging_bytes_ = kLeastStagingBytes;
  header_ = header;
  place_ = *place;
  payload_have_ = 0;
  payload_crc_ = 0;
  in_payload_ = true;
  link_.moved(place_.channel, 0, keys_ == nullptr ? kFrameHeaderBytes : kSealedHeaderBytes);
  return Status::ok();
}

Status Stream::end_frame() {
  in_payload_ = false;
  const FramePlace place = std::exchange(place_, {});
  return link_.arrived(place, header_, payload_crc_);
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
