// Records open once, whole, in their turn, and nowhere else; no key sees a nonce twice.
#include "plugin/transport/crypto/record_cipher.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "test/hex.h"

namespace riffle::record_cipher_test {
namespace {

using Record = std::vector<std::byte>;

// The two ends of one direction.
struct Direction {
  explicit Direction(std::uint64_t records_per_key = kRecordsPerKey,
                     Cipher cipher = Cipher::kChaCha20Poly1305, std::uint8_t chain = 1) {
    ends->out.start(cipher, {chain}, records_per_key);
    ends->in.start(cipher, {chain}, records_per_key);
  }
  Record seal(const Record& plain) {
    Record sealed(plain.size() + kTagBytes);
    ends->out.seal(plain, sealed.data());
    return sealed;
  }
  Record seal(std::uint8_t content) { return seal(Record(100, std::byte{content})); }
  bool open(const Record& sealed, Record* plain = nullptr) {
    Record room(sealed.size() - kTagBytes);
    const bool is_open = ends->in.open(sealed, room.data());
    if (plain != nullptr) *plain = room;
    return is_open;
  }
  Locked<StreamKeys> ends = make_locked<StreamKeys>();
};

TEST(RecordCipher, BringsRecordsOfEverySizeAcrossManyKeys) {
  for (const Cipher cipher : {Cipher::kChaCha20Poly1305, Cipher::kAes256Gcm}) {
    if ((own_ciphers() & set_of(cipher)) == 0) continue;
    Direction d(7, cipher);
    for (std::size_t i = 0; i < 300; ++i) {
      const Record plain(i * 97 % (kRecordBytes + 1), static_cast<std::byte>(i));
      Record opened;
      ASSERT_TRUE(d.open(d.seal(plain), &opened)) << i;
      ASSERT_EQ(opened, plain);
    }
    EXPECT_EQ(d.ends->out.records(), 300u);
    EXPECT_EQ(d.ends->in.records(), 300u);
  }
}

TEST(RecordCipher, EveryFlippedBitIsRefused) {
  const Record sealed = Direction().seal(5);
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    Direction d;
    Record bad = sealed;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    ASSERT_FALSE(d.open(bad)) << bit;
  }
  EXPECT_TRUE(Direction().open(sealed));
}

TEST(RecordCipher, RefusesRepeatsOtherOrdersAndGaps) {
  Direction d;
  const Record first = d.seal(1), second = d.seal(2), third = d.seal(3);
  EXPECT_TRUE(Direction().open(first));
  EXPECT_FALSE(Direction().open(second)) << "the first is missing";
  Direction repeats;
  EXPECT_TRUE(repeats.open(first));
  EXPECT_FALSE(repeats.open(first));
  Direction gap;
  EXPECT_TRUE(gap.open(first));
  EXPECT_FALSE(gap.open(third));
  EXPECT_FALSE(gap.open(second)) << "nothing opens behind one that did not";
  Direction shorter;
  EXPECT_FALSE(shorter.open({first.begin(), first.end() - 1}));
}

TEST(RecordCipher, RefusesRecordsOfOtherKeys) {
  EXPECT_FALSE(Direction(kRecordsPerKey, Cipher::kChaCha20Poly1305, 2).open(Direction().seal(1)));
}

// Equal plain texts make equal records if and only if key and nonce are equal: so these never were.
TEST(RecordCipher, NeitherWithinAKeyNorOverThemDoesANonceComeTwice) {
  for (const std::uint64_t per_key : {1, 3, 64}) {
    Direction d(per_key);
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(seen.insert(hex_of(d.seal(Record(16)))).second) << i;
  }
}

// By Python's hashlib and cryptography: BLAKE2b makes each chain of the one before and a key of
// each chain; the nonce is four zero bytes and the number.
TEST(RecordCipher, MakesTheRecordsThatOtherCodeMakes) {
  const char text[] = "abc";
  const Record plain(reinterpret_cast<const std::byte*>(text),
                     reinterpret_cast<const std::byte*>(text) + 3);
  Direction d(1);
  EXPECT_EQ(hex_of(d.seal(plain)), "0b8e5c878cd46dab3e7ab596454e7b6bd4796f");
  EXPECT_EQ(hex_of(d.seal(plain)), "004bf7db660a55ee815792245f9828cdc5f776");
  EXPECT_EQ(hex_of(d.seal(plain)), "b3df57190f9cd290d5ed23549854b03842bf99");
}

// The key changes where it is said, on both ends, and is another one.
TEST(RecordCipher, TheKeyOfLaterRecordsIsAnother) {
  Direction often(4), once(1000);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(often.seal(1), once.seal(1)) << i;
  EXPECT_NE(often.seal(1), once.seal(1));
}

TEST(RecordCipher, OneKeySealsFarLessThanItsCipherAllows) {
  // AES-GCM with counted nonces: 2^64 blocks under one key would be the end, 2^32 are safe by far.
  EXPECT_LE(kRecordsPerKey * (kRecordBytes / 16), 1ull << 32);
}

}  // namespace
}  // namespace riffle::record_cipher_test
