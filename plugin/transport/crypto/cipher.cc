#include "plugin/transport/crypto/cipher.h"

#include "plugin/transport/base/random.h"
#include "topology/base/check.h"

namespace riffle {

static_assert(kTagBytes == crypto_aead_aes256gcm_ABYTES &&
              kTagBytes == crypto_aead_chacha20poly1305_ietf_ABYTES);
static_assert(kAeadNonceBytes == crypto_aead_aes256gcm_NPUBBYTES &&
              kAeadNonceBytes == crypto_aead_chacha20poly1305_ietf_NPUBBYTES);
static_assert(kKeyBytes == crypto_aead_aes256gcm_KEYBYTES &&
              kKeyBytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES);

CipherSet own_ciphers() {
  start_sodium();
  const CipherSet always = set_of(Cipher::kChaCha20Poly1305);
  if (crypto_aead_aes256gcm_is_available() == 0) return always;
  return static_cast<CipherSet>(always | set_of(Cipher::kAes256Gcm));
}

Cipher choose_cipher(CipherSet a, CipherSet b) {
  for (const Cipher cipher : {Cipher::kAes256Gcm, Cipher::kChaCha20Poly1305}) {
    if ((a & b & set_of(cipher)) != 0) return cipher;
  }
  return Cipher::kNone;
}

const char* cipher_name(Cipher cipher) {
  return cipher == Cipher::kAes256Gcm          ? "AES-256-GCM"
         : cipher == Cipher::kChaCha20Poly1305 ? "ChaCha20-Poly1305"
                                               : "none";
}

void Aead::set_key(Cipher cipher, const Key& key) {
  RIFFLE_CHECK((own_ciphers() & set_of(cipher)) != 0, "this machine has the cipher");
  cipher_ = cipher;
  if (cipher == Cipher::kAes256Gcm) {
    (void)crypto_aead_aes256gcm_beforenm(&aes_, key.data());
  } else {
    chacha_ = key;
  }
}

void Aead::seal(std::span<const std::byte> plain, const AeadNonce& nonce, std::byte* sealed) const {
  auto* const to = reinterpret_cast<unsigned char*>(sealed);
  const auto* const from = reinterpret_cast<const unsigned char*>(plain.data());
  if (cipher_ == Cipher::kAes256Gcm) {
    (void)crypto_aead_aes256gcm_encrypt_afternm(to, nullptr, from, plain.size(), nullptr, 0,
                                                nullptr, nonce.data(), &aes_);
  } else {
    (void)crypto_aead_chacha20poly1305_ietf_encrypt(to, nullptr, from, plain.size(), nullptr, 0,
                                                    nullptr, nonce.data(), chacha_.data());
  }
}

bool Aead::open(std::span<const std::byte> sealed, const AeadNonce& nonce, std::byte* plain) const {
  auto* const to = reinterpret_cast<unsigned char*>(plain);
  const auto* const from = reinterpret_cast<const unsigned char*>(sealed.data());
  if (cipher_ == Cipher::kAes256Gcm) {
    return crypto_aead_aes256gcm_decrypt_afternm(to, nullptr, nullptr, from, sealed.size(), nullptr,
                                                 0, nonce.data(), &aes_) == 0;
  }
  return crypto_aead_chacha20poly1305_ietf_decrypt(to, nullptr, nullptr, from, sealed.size(),
                                                   nullptr, 0, nonce.data(), chacha_.data()) == 0;
}

}  // namespace riffle
