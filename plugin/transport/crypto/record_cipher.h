// Records: what one direction of one stream is cut into. Both ends count them: the number is the
// nonce, so no record opens twice, out of turn, or in another stream, and one that is missing stops
// all that follow. Nothing but cipher text and tags is on the wire.
//
// After kRecordsPerKey records (64 GiB at most, far below what either cipher allows for one key)
// both ends step to the next key by a hash that cannot be run backwards; the number goes on.
// A key that is stolen later opens nothing that was sealed with an earlier one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/transport/crypto/cipher.h"
#include "plugin/transport/crypto/locked.h"

namespace riffle {

inline constexpr std::size_t kRecordBytes = 16 << 10;  // most plain bytes of one record
inline constexpr std::uint64_t kRecordsPerKey = 1u << 22;

// Holds keys: keep it in Locked memory. One thread at a time.
class RecordCipher {
 public:
  // `chain`: the secret that both ends have for this direction.
  void start(Cipher cipher, const Key& chain, std::uint64_t records_per_key = kRecordsPerKey);
  // The next record. Precondition: at most kRecordBytes; `sealed` has room for kTagBytes more.
  void seal(std::span<const std::byte> plain, std::byte* sealed);
  // False: it is not the next one, as it was sealed; nothing that follows will open either.
  [[nodiscard]] bool open(std::span<const std::byte> sealed, std::byte* plain);

  std::uint64_t records() const { return number_; }  // so far
  Cipher cipher() const { return cipher_; }

 private:
  AeadNonce next_nonce();
  void use_chain();
  void next_key();

  Aead aead_;
  Key chain_{};
  std::uint64_t number_ = 0;
  std::uint64_t left_of_key_ = 0;
  std::uint64_t records_per_key_ = 0;
  Cipher cipher_ = Cipher::kNone;
};

// The two directions of a stream, as one of its ends has them.
struct StreamKeys {
  RecordCipher out, in;
};

}  // namespace riffle
