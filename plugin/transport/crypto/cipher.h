// The two ciphers that frames are sealed with, both authenticated: AES-256-GCM where a processor
// has it in hardware (libsodium has no other), else ChaCha20-Poly1305 (RFC 8439).
#pragma once

#include <sodium.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/transport/crypto/keys.h"

namespace riffle {

enum class Cipher : std::uint8_t { kNone = 0, kChaCha20Poly1305 = 1, kAes256Gcm = 2 };

using CipherSet = std::uint8_t;  // bits 1 << Cipher
constexpr CipherSet set_of(Cipher cipher) {
  return static_cast<CipherSet>(1u << static_cast<unsigned>(cipher));
}

// What this machine has; never empty.
CipherSet own_ciphers();
// The one that a link of these two ends takes; kNone: they share none.
Cipher choose_cipher(CipherSet a, CipherSet b);
const char* cipher_name(Cipher cipher);

inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kAeadNonceBytes = 12;
using AeadNonce = std::array<std::uint8_t, kAeadNonceBytes>;

// One key, ready to use. A nonce must never be given twice to the same key. Holds the key: keep it
// in Locked memory. Any thread, one at a time.
class Aead {
 public:
  // Precondition: own_ciphers() has it.
  void set_key(Cipher cipher, const Key& key);
  // Writes plain.size() + kTagBytes. `sealed` may be `plain`'s own place, or lie apart from it.
  void seal(std::span<const std::byte> plain, const AeadNonce& nonce, std::byte* sealed) const;
  // Writes sealed.size() - kTagBytes. False: it was not sealed with this key and nonce, or was
  // changed; then `plain` holds nothing of it. `plain` as above.
  [[nodiscard]] bool open(std::span<const std::byte> sealed, const AeadNonce& nonce,
                          std::byte* plain) const;

 private:
  Cipher cipher_ = Cipher::kNone;
  union {
    crypto_aead_aes256gcm_state aes_{};
    Key chacha_;
  };
};

}  // namespace riffle
