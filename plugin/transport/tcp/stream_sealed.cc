// Stream with keys: what came is opened record by record (crypto/record_cipher.h).
#include <algorithm>

#include "plugin/transport/tcp/copy_forward.h"
#include "plugin/transport/tcp/stream.h"
#include "plugin/transport/tcp/tcp_link.h"

namespace riffle {
namespace {

Status unsealed() {
  return remote_error(
      "what came does not open with this connection's key (RIFFLE_ENCRYPT): it was changed, "
      "repeated or left out on its way");
}

}  // namespace

std::size_t Stream::next_record_bytes() const {
  if (!in_payload_) return kSealedHeaderBytes;
  return std::min<std::size_t>(header_.length - payload_have_, kRecordBytes) + kTagBytes;
}

// As digest(), by whole records.
Status Stream::open_records() {
  std::size_t at = 0;
  while (link_.is_up() && !discarding_) {
    const std::size_t size = next_record_bytes();
    if (staged_ - at < size) break;
    const std::span<std::byte> record(staging_.data() + at, size);
    at += size;
    if (Status s = in_payload_ ? open_payload(record) : open_header(record); !s) return s;
    is_proven_ = true;
  }
  keep_rest(std::span(staging_).subspan(at, staged_ - at));
  return Status::ok();
}

Status Stream::open_header(std::span<const std::byte> record) {
  FrameBytes bytes;
  if (!keys_->in.open(record, std::as_writable_bytes(std::span(bytes)).data())) return unsealed();
  const Result<FrameHeader> header = decode(bytes);
  if (!header) return header.status();
  if (Status s = begin_frame(*header); !s) return s;
  // One without a payload has no further record.
  const bool is_whole = in_payload_ && header_.length == 0 && link_.is_up() && !discarding_;
  return is_whole ? end_frame() : Status::ok();
}

// NET's receivers may poll the memory (copy_forward.h), so nothing but plain bytes goes there, in
// order. Other payloads are opened straight into their place.
Status Stream::open_payload(std::span<std::byte> record) {
  const std::size_t size = record.size() - kTagBytes;
  const bool is_direct = place_.channel != nullptr && header_.type != FrameType::kMessage;
  std::byte* const opened = is_direct ? place_.at + payload_have_ : record.data();
  if (!keys_->in.open(record, opened)) return unsealed();
  if (is_direct) {
    payload_have_ += size;
    link_.moved(place_.channel, 0, size);
  } else {
    take_payload(opened, size);
  }
  link_.moved(place_.channel, 0, kTagBytes);
  return payload_have_ == header_.length ? end_frame() : Status::ok();
}

}  // namespace riffle
