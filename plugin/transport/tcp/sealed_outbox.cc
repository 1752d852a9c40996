#include "plugin/transport/tcp/sealed_outbox.h"

#include <algorithm>

namespace riffle {
namespace {

constexpr std::size_t kFirstBytes = 4 << 10;  // for a stream that sends but heartbeats and credits
constexpr std::size_t kMostBytes = 4 * (kSealedHeaderBytes + kRecordBytes + kTagBytes);

}  // namespace

// Null: send first.
std::byte* SealedOutbox::room_for(std::size_t plain_bytes) {
  const std::size_t size = plain_bytes + kTagBytes;
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ + size > buffer_.size()) {
    if (end_ + size > kMostBytes) return nullptr;
    buffer_.resize(end_ + size <= kFirstBytes ? kFirstBytes : kMostBytes);
  }
  std::byte* const at = buffer_.data() + end_;
  end_ += size;
  return at;
}

std::span<const std::byte> SealedOutbox::fill(std::span<TxFrame* const> frames,
                                              RecordCipher& cipher) {
  while (frame_ < frames.size()) {
    const TxFrame& frame = *frames[frame_];
    if (has_header_ && of_payload_ == frame.payload.size()) {
      ++frame_;
      has_header_ = false;
      of_payload_ = 0;
      continue;
    }
    const auto plain =
        has_header_ ? frame.payload.subspan(
                          of_payload_, std::min(kRecordBytes, frame.payload.size() - of_payload_))
                    : std::as_bytes(std::span(frame.wire));
    std::byte* const to = room_for(plain.size());
    if (to == nullptr) break;
    cipher.seal(plain, to);
    if (has_header_) of_payload_ += plain.size();
    has_header_ = true;
  }
  return {buffer_.data() + begin_, end_ - begin_};
}

void SealedOutbox::took(std::size_t bytes, std::size_t frames) {
  begin_ += bytes;
  frame_ -= std::min(frame_, frames);
}

}  // namespace riffle
