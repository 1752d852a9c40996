#include "plugin/transport/crypto/record_cipher.h"

#include "plugin/transport/base/wire.h"
#include "topology/base/check.h"

namespace riffle {

void RecordCipher::start(Cipher cipher, const Key& chain, std::uint64_t records_per_key) {
  cipher_ = cipher;
  chain_ = chain;
  records_per_key_ = records_per_key;
  number_ = 0;
  use_chain();
}

void RecordCipher::use_chain() {
  Key key;
  derive_key(chain_, "record key", {}, &key);
  aead_.set_key(cipher_, key);
  left_of_key_ = records_per_key_;
  sodium_memzero(key.data(), key.size());
}

void RecordCipher::next_key() {
  Key next;
  derive_key(chain_, "next chain", {}, &next);
  chain_ = next;
  sodium_memzero(next.data(), next.size());
  use_chain();
}

AeadNonce RecordCipher::next_nonce() {
  if (left_of_key_ == 0) next_key();
  --left_of_key_;
  AeadNonce nonce{};
  put(&nonce[kAeadNonceBytes - sizeof number_], number_);
  ++number_;
  RIFFLE_CHECK(number_ != 0, "2^64 records are more than a connection lives to send");
  return nonce;
}

void RecordCipher::seal(std::span<const std::byte> plain, std::byte* sealed) {
  RIFFLE_CHECK(plain.size() <= kRecordBytes, "a record has a most size");
  aead_.seal(plain, next_nonce(), sealed);
}

bool RecordCipher::open(std::span<const std::byte> sealed, std::byte* plain) {
  RIFFLE_CHECK(sealed.size() >= kTagBytes && sealed.size() <= kRecordBytes + kTagBytes,
               "a record ends with its tag and has a most size");
  return aead_.open(sealed, next_nonce(), plain);
}

}  // namespace riffle
