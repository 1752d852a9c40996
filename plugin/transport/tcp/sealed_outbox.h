// What an encrypted stream sends: each frame's header as one record, then its payload in records of
// kRecordBytes (crypto/record_cipher.h). They are sealed into a buffer of the stream, as the
// owner's memory stays as it is, and stay there until the kernel has them: no record is ever made
// twice. The buffer is made when the stream first sends, a large one when it first sends more.
//
// One thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "plugin/transport/crypto/record_cipher.h"
#include "plugin/transport/tcp/tx_queue.h"

namespace riffle {

inline constexpr std::size_t kSealedHeaderBytes = kFrameHeaderBytes + kTagBytes;

// On the wire.
constexpr std::size_t sealed_payload_bytes(std::size_t payload) {
  return payload + kTagBytes * ((payload + kRecordBytes - 1) / kRecordBytes);
}
constexpr std::size_t sealed_frame_bytes(std::size_t payload) {
  return kSealedHeaderBytes + sealed_payload_bytes(payload);
}

class SealedOutbox {
 public:
  // What the kernel has yet to take, after sealing as much of `frames` as there is room for. They
  // are always the stream's frames that have not left, the oldest first; wire holds their headers.
  std::span<const std::byte> fill(std::span<TxFrame* const> frames, RecordCipher& cipher);
  // The kernel took so many bytes of that, and with them the last ones of so many frames.
  void took(std::size_t bytes, std::size_t frames);

 private:
  std::byte* room_for(std::size_t plain_bytes);

  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // sealed, and not with the kernel
  std::size_t frame_ = 0;            // being sealed
  bool has_header_ = false;          // ... whose header is
  std::size_t of_payload_ = 0;       // ... and so much of its payload
};

}  // namespace riffle
