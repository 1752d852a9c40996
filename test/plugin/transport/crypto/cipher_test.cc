// The ciphers as they are used here, against published vectors, and what they refuse.
#include "plugin/transport/crypto/cipher.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/hex.h"

namespace riffle::cipher_test {
namespace {

struct Vector {
  const char* source;
  Cipher cipher;
  const char *key, *nonce, *plain, *sealed;
};

constexpr Vector kVectors[] = {
    // The GCM specification (McGrew and Viega), appendix B, AES-256 without additional data.
    {"GCM test case 13", Cipher::kAes256Gcm,
     "0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000",
     "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {"GCM test case 14", Cipher::kAes256Gcm,
     "0000000000000000000000000000000000000000000000000000000000000000", "000000000000000000000000",
     "00000000000000000000000000000000",
     "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"},
    {"GCM test case 15", Cipher::kAes256Gcm,
     "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b"
     "5"
     "25b16aedf5aa0de657ba637b391aafd255",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828"
     "838"
     "c5f61e6393ba7a0abcc9f662898015adb094dac5d93471bdec1a502270e3cc6c"},
    // Wycheproof, chacha20_poly1305_test.json, without additional data.
    {"Wycheproof 2", Cipher::kChaCha20Poly1305,
     "cc56b680552eb75008f5484b4cb803fa5063ebd6eab91f6ab6aef4916a766273", "99e23ec48985bccdeeab60f1",
     "2a", "3acac27dec0968801e9f6eded69d807522"},
};

bool has(Cipher cipher) { return (own_ciphers() & set_of(cipher)) != 0; }

Aead with_key(Cipher cipher, const char* key) {
  Aead aead;
  aead.set_key(cipher, array_of_hex<Key>(key));
  return aead;
}

TEST(Cipher, SealsAndOpensAsPublished) {
  for (const Vector& v : kVectors) {
    if (!has(v.cipher)) continue;
    const Aead aead = with_key(v.cipher, v.key);
    const auto nonce = array_of_hex<AeadNonce>(v.nonce);
    const std::vector<std::byte> plain = bytes_of_hex(v.plain);
    std::vector<std::byte> sealed(plain.size() + kTagBytes), opened(plain.size());
    aead.seal(plain, nonce, sealed.data());
    EXPECT_EQ(hex_of(sealed), v.sealed) << v.source;
    EXPECT_TRUE(aead.open(sealed, nonce, opened.data())) << v.source;
    EXPECT_EQ(opened, plain) << v.source;
  }
}

// RFC 8439, section 2.8.2: the cipher text does not depend on the additional data that is there.
TEST(Cipher, MakesTheCipherTextOfRfc8439) {
  const std::string text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
      "sunscreen would be it.";
  const Aead aead = with_key(Cipher::kChaCha20Poly1305,
                             "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f");
  std::vector<std::byte> sealed(text.size() + kTagBytes);
  aead.seal(std::as_bytes(std::span(text)), array_of_hex<AeadNonce>("070000004041424344454647"),
            sealed.data());
  sealed.resize(text.size());
  EXPECT_EQ(
      hex_of(sealed),
      "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da"
      "92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585"
      "808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116");
}

class EachCipher : public ::testing::TestWithParam<Cipher> {
 protected:
  void SetUp() override {
    if (!has(GetParam())) GTEST_SKIP() << "this machine lacks " << cipher_name(GetParam());
  }
};
INSTANTIATE_TEST_SUITE_P(All, EachCipher,
                         ::testing::Values(Cipher::kChaCha20Poly1305, Cipher::kAes256Gcm));

TEST_P(EachCipher, ShowsNothingOfWhatItRefuses) {
  const Aead aead = with_key(GetParam(), "01");
  const std::vector<std::byte> plain(1000, std::byte{0x5a});
  std::vector<std::byte> sealed(plain.size() + kTagBytes);
  aead.seal(plain, {}, sealed.data());
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    std::vector<std::byte> bad = sealed, opened(plain.size(), std::byte{0x11});
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_FALSE(aead.open(bad, {}, opened.data())) << bit;
    ASSERT_EQ(std::count(opened.begin(), opened.end(), std::byte{0x5a}), 0) << bit;
  }
  std::vector<std::byte> opened(plain.size());
  EXPECT_FALSE(aead.open(sealed, {1}, opened.data())) << "another nonce";
  EXPECT_FALSE(with_key(GetParam(), "02").open(sealed, {}, opened.data())) << "another key";
}

TEST_P(EachCipher, WorksInPlace) {
  const Aead aead = with_key(GetParam(), "01");
  for (const std::size_t size : {0, 1, 15, 16, 17, 1000, 16384}) {
    std::vector<std::byte> plain(size, std::byte{7}), apart(size + kTagBytes), place = plain;
    place.resize(size + kTagBytes);
    aead.seal(plain, {9}, apart.data());
    aead.seal({place.data(), size}, {9}, place.data());
    EXPECT_EQ(place, apart) << size;
    EXPECT_TRUE(aead.open(place, {9}, place.data()));
    place.resize(size);
    EXPECT_EQ(place, plain) << size;
  }
}

TEST(Cipher, TheFasterOneWhereBothHaveIt) {
  const CipherSet one = set_of(Cipher::kChaCha20Poly1305);
  const CipherSet both = static_cast<CipherSet>(one | set_of(Cipher::kAes256Gcm));
  EXPECT_EQ(choose_cipher(both, both), Cipher::kAes256Gcm);
  EXPECT_EQ(choose_cipher(both, one), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(choose_cipher(one, both), Cipher::kChaCha20Poly1305);
  EXPECT_EQ(choose_cipher(one, 0), Cipher::kNone);
  EXPECT_EQ(choose_cipher(one, 1), Cipher::kNone);  // plain is no cipher
}

}  // namespace
}  // namespace riffle::cipher_test
