// Keys of keys, and keys of exchanges.
#include "plugin/transport/crypto/keys.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "plugin/transport/crypto/key_exchange.h"
#include "test/hex.h"
#include "test/sanitized.h"

namespace riffle::keys_test {
namespace {

Key counted() {
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  return key;
}

// By Python: hashlib.blake2b(b"\x0arecord keyabc", key=bytes(range(32)), digest_size=32).
TEST(Keys, AreMadeByBlake2b) {
  const Key abc = {'a', 'b', 'c'};
  Key made;
  derive_key(counted(), "record key", {ByteView(abc).first(3)}, &made);
  EXPECT_EQ(hex_of(std::as_bytes(std::span(made))),
            "3964390f7c1ba7578701cd912e23e4662673c7180f27dd001f96ce58cc413378");
}

TEST(Keys, BothEndsOfAnExchangeAgreeAndNoOtherDoes) {
  const Locked<KeyPair> a = KeyPair::make(), b = KeyPair::make(), c = KeyPair::make();
  Key at_a, at_b, at_c;
  ASSERT_TRUE(a->agree(b->public_key(), &at_a));
  ASSERT_TRUE(b->agree(a->public_key(), &at_b));
  ASSERT_TRUE(c->agree(a->public_key(), &at_c));
  EXPECT_EQ(at_a, at_b);
  EXPECT_NE(at_a, at_c);
}

// With these, what is agreed on would be known to all.
TEST(Keys, PublicKeysOfSmallOrderAreRefused) {
  const Locked<KeyPair> pair = KeyPair::make();
  Key shared;
  for (const char* weak :
       {"00", "01", "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"}) {
    const Status s = pair->agree(array_of_hex<PublicKey>(weak), &shared);
    EXPECT_NE(s.message().find("small order"), std::string::npos) << weak;
  }
}

TEST(Keys, EveryInputAndEveryPurposeCounts) {
  const Key proof = counted(), shared = {9}, said = {7};
  const auto secrets = derive_secrets(proof, shared, {said});
  EXPECT_NE(secrets->to_listener, secrets->from_listener);
  EXPECT_NE(secrets->to_listener, secrets->listener_proof);
  EXPECT_EQ(derive_secrets(proof, shared, {said})->to_listener, secrets->to_listener);
  EXPECT_NE(derive_secrets(said, shared, {said})->to_listener, secrets->to_listener);
  EXPECT_NE(derive_secrets(proof, said, {said})->to_listener, secrets->to_listener);
  EXPECT_NE(derive_secrets(proof, shared, {shared})->to_listener, secrets->to_listener);
}

// What /proc says of the page that an address lies in.
std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_here = begin <= wanted && wanted < end;
    }
    if (is_here && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(Keys, LieInMemoryThatIsLockedAndNotDumped) {
  const Locked<StreamKeys> keys = make_locked<StreamKeys>();
  const std::string flags = flags_of(keys.get());
  if (flags.empty()) GTEST_SKIP() << "no /proc/self/smaps here";
  EXPECT_NE(flags.find(" dd "), std::string::npos) << flags;  // MADV_DONTDUMP
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  if (!kIsSanitized && limit.rlim_cur >= 1u << 20) {            // sanitizers make mlock do nothing
    EXPECT_NE(flags.find(" lo "), std::string::npos) << flags;  // locked
  }
}

}  // namespace
}  // namespace riffle::keys_test
