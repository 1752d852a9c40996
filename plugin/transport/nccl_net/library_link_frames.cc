// LibraryLink: frames, cut into messages on the way out and put together on the way in.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/wire.h"
#include "plugin/transport/nccl_net/library_link.h"

namespace riffle::nccl_net {
namespace {

constexpr int kMessagesPerPoll = 4;  // of one link, so that others get their turn

}  // namespace

// ---- sending ----

void LibraryLink::send(const FrameHeader& header, std::span<const std::byte> payload,
                       std::uint64_t cookie, std::uint64_t priority) {
  RIFFLE_CHECK(header.length == payload.size() && payload.size() <= kMaxFramePayload,
               "header.length is the size of the payload, within the limit");
  if (!serves()) return;
  FrameHeader stamped = header;
  stamped.communicator = options_.communicator;
  if (options_.payload_crc) stamped.payload_crc = crc32c(payload.data(), payload.size());
  queue_.push(stamped, payload, cookie, priority);
  bytes_to_send_ += kFrameHeaderBytes + payload.size();
}

// The next message: its number, then what fits of the frame at hand, or of the next one.
void LibraryLink::fill(std::byte* slot) {
  put(reinterpret_cast<std::uint8_t*>(slot), number_of(options_.rank, out_.begun()));
  std::byte* const content = slot + kMessageHeadBytes;
  std::size_t at = 0;
  if (frame_ == nullptr) {
    frame_ = queue_.pop();
    frame_->header.hints = hints_;
    frame_at_ = 0;
    at = kFrameHeaderBytes;
    const FrameBytes header = encode(frame_->header);
    std::memcpy(content, header.data(), header.size());
  }
  const std::size_t part = std::min(frame_->payload.size() - frame_at_, kContentBytes - at);
  if (part > 0) std::memcpy(content + at, frame_->payload.data() + frame_at_, part);
  frame_at_ += part;
  Ending& ending = endings_[out_.begun() % kMostSlots];
  ending = {};
  if (frame_at_ == frame_->payload.size()) {
    ending = {true, frame_->cookie};
    queue_.recycle(std::exchange(frame_, nullptr));
  }
  out_.begin(kMessageHeadBytes + at + part);
}

bool LibraryLink::send_on() {
  if (send_fault_) return false;
  bool moved = false;
  while (true) {
    const Result<std::size_t> left_bytes = out_.take_done();
    if (!left_bytes) return broke(&send_fault_, left_bytes.status()), true;
    if (*left_bytes == 0) break;
    moved = true;
    const Ending ending = endings_[ended_++ % kMostSlots];
    left(*left_bytes, ending);
    if (state_ == State::kOver || is_halted_) return true;
  }
  while (has_to_send() && out_.begun() < granted_ && !heard_end_) {
    std::byte* const slot = out_.free_slot();
    if (slot == nullptr) break;
    fill(slot);
  }
  const Result<bool> took = out_.push();
  if (!took) return broke(&send_fault_, took.status()), true;
  return moved || *took;
}

void LibraryLink::left(std::size_t bytes, const Ending& ending) {
  account_.counters.bytes_sent += bytes;
  bytes_to_send_ -= std::min(bytes_to_send_, bytes);
  if (!ending.ends_frame) return;
  ++account_.counters.frames_sent;
  if (FrameSink* const sink = owner_.sink(); sink != nullptr && serves()) {
    sink->sent(options_.number, ending.cookie);
  }
}

// The peer closes: what is queued goes nowhere and counts as sent, as over TCP.
void LibraryLink::settle_queue() {
  while (serves() && has_to_send()) {
    TxFrame* const frame = frame_ != nullptr ? std::exchange(frame_, nullptr) : queue_.pop();
    const Ending ending{true, frame->cookie};
    queue_.recycle(frame);
    left(0, ending);
  }
  if (!out_.is_under_way()) bytes_to_send_ = 0;
}

// ... and so does what is under way, of which nothing more is asked.
void LibraryLink::settle_all() {
  while (serves() && ended_ < out_.begun()) left(0, endings_[ended_++ % kMostSlots]);
  settle_queue();
  bytes_to_send_ = 0;
}

// ---- receiving ----

bool LibraryLink::receive_on() {
  bool moved = false;
  for (int i = 0; i < kMessagesPerPoll && !receive_fault_; ++i) {
    const auto message = in_.take();
    if (!message) return broke(&receive_fault_, message.status()), true;
    if (message->empty()) break;
    moved = true;
    if (in_.tells_size()) account_.counters.bytes_received += message->size();
    if (const Status s = take(*message); !s) return fail(s, true), true;
    if (state_ == State::kOver || is_halted_) return true;
    in_.release();
  }
  if (receive_fault_) return moved;
  const auto posted = in_.post();
  if (!posted) return broke(&receive_fault_, posted.status()), true;
  tell_posted();
  return moved || *posted;
}

// A library that tells of a message before it is there, or of another one, shows an old number.
Status LibraryLink::take(std::span<const std::byte> message) {
  const auto* const number = reinterpret_cast<const std::uint8_t*>(message.data());
  if (message.size() <= kMessageHeadBytes ||
      get<std::uint64_t>(number) != number_of(options_.number, in_.taken() - 1)) {
    return remote_error(net_.text + ": what came is not message " +
                        std::to_string(in_.taken() - 1) + " of " + options_.peer);
  }
  if (state_ != State::kUp) return Status::ok();  // no use for it
  auto content = message.subspan(kMessageHeadBytes);
  if (!header_) return begin_frame(content);
  const std::size_t part = std::min<std::size_t>(header_->length - have_, kContentBytes);
  cut(&content, part);
  if (content.size() != part) return has_wrong_size(content.size(), part);
  take_payload(content.data(), part);
  return have_ == header_->length ? end_frame() : Status::ok();
}

// Where the library does not tell how much came, it is what is due.
void LibraryLink::cut(std::span<const std::byte>* content, std::size_t due) {
  if (in_.tells_size()) return;
  *content = content->first(due);
  account_.counters.bytes_received += kMessageHeadBytes + due;
}

Status LibraryLink::has_wrong_size(std::size_t bytes, std::size_t wanted) const {
  return remote_error(net_.text + ": " + std::to_string(bytes) + " bytes came from " +
                      options_.peer + " where " + std::to_string(wanted) + " of a frame are due");
}

Status LibraryLink::begin_frame(std::span<const std::byte> content) {
  FrameBytes bytes;
  if (content.size() < bytes.size()) return has_wrong_size(content.size(), bytes.size());
  std::memcpy(bytes.data(), content.data(), bytes.size());
  Result<FrameHeader> header = decode(bytes);
  if (!header) return header.status();
  if (header->communicator != options_.communicator) {
    return remote_error("it sent a frame of another communicator");
  }
  const std::size_t part = std::min(std::size_t{header->length}, kContentBytes - bytes.size());
  cut(&content, bytes.size() + part);
  if (content.size() != bytes.size() + part) {
    return has_wrong_size(content.size(), bytes.size() + part);
  }
  FrameSink* const sink = owner_.sink();
  if (sink == nullptr) return Status::ok();
  Result<std::byte*> to = sink->get_receive_buffer(options_.number, *header);
  if (!to) return to.status();
  if (state_ != State::kUp) return Status::ok();
  to_ = *to;
  have_ = 0;
  payload_crc_ = 0;
  if (part > 0) take_payload(content.data() + bytes.size(), part);
  header_ = *header;
  return have_ == header_->length ? end_frame() : Status::ok();
}

void LibraryLink::take_payload(const std::byte* from, std::size_t size) {
  if (options_.payload_crc) payload_crc_ = crc32c(from, size, payload_crc_);
  std::memcpy(to_ + have_, from, size);
  have_ += size;
}

Status LibraryLink::end_frame() {
  const FrameHeader header = *std::exchange(header_, std::nullopt);
  if (options_.payload_crc && header.payload_crc != payload_crc_) {
    return remote_error("payload damaged (CRC32C does not match)");
  }
  ++account_.counters.frames_received;
  account_.of_peer = header.hints;
  if (FrameSink* const sink = owner_.sink()) sink->arrived(options_.number, header, to_);
  return Status::ok();
}

}  // namespace riffle::nccl_net
