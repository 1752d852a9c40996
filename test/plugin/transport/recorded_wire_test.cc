// Bytes of handles, handshakes and frames as releases send them. Those of this version are read as
// they were meant, whatever the code becomes: a change that breaks this test needs another
// kFrameVersion (CONTRIBUTING.md, Releases), and another record here. Those of other versions are
// refused by one sentence that names both.
//
// Made by other code than Riffle's: Python's hashlib (BLAKE2b) and cryptography (X25519,
// ChaCha20-Poly1305), by the layouts that the headers give.
#include <gtest/gtest.h>

#include <string>

#include "plugin/collective/engine/wire.h"
#include "plugin/net/net_frames.h"
#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/handle.h"
#include "plugin/transport/crypto/key_file.h"
#include "plugin/transport/tcp/link_keys.h"
#include "plugin/version.h"
#include "test/hex.h"

namespace riffle::recorded_wire_test {
namespace {

// ---- 0.2.0, wire version 5 ----

constexpr std::uint64_t kCommunicator = 0x1122334455667788;
const Secret kSecret = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
                        0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f};

constexpr char kHandle[] =
    "52464c48000200008877665544332211efcdab0000000000101112131415161718191a1b1c1d1e1f0202000a"
    "0000076712fd0000000000000000000000000000096812000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000030f28f730000000000000000";
constexpr char kEncryptedHandle[] =
    "52464c48000200008877665544332211efcdab0000000000101112131415161718191a1b1c1d1e1f0202000a"
    "0000076712fd0000000000000000000000000000096812000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000000013371e4810000000000000000";
constexpr char kChallenge[] = "52464c43000200000500000000000000303132333435363738393a3b3c3d3e3f";
constexpr char kHello[] =
    "52464c4f00020000887766554433221105000000000000000300000001000200505152535455565758595a5b"
    "5c5d5e5f00000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "92d9c790eadb616fa24dd1768480fc68f24063a78b295f982aef49e974c14e9b";
constexpr char kWelcome[] =
    "52464c57000000000000000000000000000000000000000000000000000000000000000000000000635061ce"
    "f461855b4c25df47485244ac0e1685c4d3d14208b7790e5782523f3c";
constexpr char kData[] =
    "52464c310501000088776655443322110300000000000000000000000700000000000000e803000000000000"
    "00000400000000000200000100000110071fe95a";
constexpr char kMessage[] =
    "52464c31050c0000887766554433221105000000000000000500000009000000000000000000020000000000"
    "00000400000000000000000000000000d80d2395";
constexpr char kHeartbeat[] =
    "52464c3105030000887766554433221100000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000750a7571";
constexpr char kGoodbye[] =
    "52464c3105040000887766554433221100000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000836c777e";

// With a key file of 32 bytes k, AES at the connector alone, and the connector's own number below.
constexpr char kConnectorsSecret[] =
    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
constexpr char kSealedChallenge[] =
    "52464c43000200000502020000000000303132333435363738393a3b3c3d3e3f";
constexpr char kSealedHello[] =
    "52464c4f00020000887766554433221105000000000000000300000001000200505152535455565758595a5b"
    "5c5d5e5f020600000000000007a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c"
    "97d117a1536e8b0d120afff43c4920492b18fd6638f55332e0f027e9bb81afaa";
constexpr char kSealedWelcome[] =
    "52464c570100000064b101b1d0be5a8704bd078f9895001fc03e8e9f9522f188dd128d9846d4846601a80920"
    "085b200119bc51a7dfc1c3b5408f180f1ec9d5e93f00f4e5b10fc7e3";
constexpr char kSealedHeader[] =
    "31b433744c6ae94482fa0ffc7f16efd68babeb75d3c63267ac1e643efa5b01aaca7c46dc60966839de5c7671"
    "659a5a383d367ebdded43e36ec886497b0a15ab9797ea67073a589fe0fe783ad894cf116";
constexpr char kSealedPayload[] = "fdf42bc8c9b9409ba1ea8e50405532c500702f";

// ---- 0.1.0, wire version 3: the first 8 bytes of everything are promised to stay ----

constexpr char kOldHandle[] = "52464c4800010000";
constexpr char kOldChallenge[] = "52464c430001000003";
constexpr char kOldHello[] = "52464c4f00010000";
constexpr char kOldFrame[] = "52464c310301";

bool names_both(const Status& status, const std::string& old, const std::string& own) {
  const std::string& text = status.message();
  return text.find(old) != std::string::npos && text.find(own) != std::string::npos &&
         text.find('\n') == std::string::npos;
}

Handle handle_of(const char* hex) {
  Handle handle;
  handle.bytes = array_of_hex<decltype(handle.bytes)>(hex);
  return handle;
}

EncryptionOptions with_key() {
  const std::vector<std::uint8_t> content(32, 'k');
  return {.is_on = true,
          .key = std::make_shared<const PresharedKey>(content),
          .ciphers = static_cast<CipherSet>(set_of(Cipher::kChaCha20Poly1305) |
                                            set_of(Cipher::kAes256Gcm))};
}

TEST(RecordedWire, OtherReleasesAreRefusedByASentenceThatNamesBoth) {
  EXPECT_TRUE(names_both(decode(handle_of(kOldHandle)).status(), "0.1.0", kVersion));
  EXPECT_TRUE(
      names_both(check_challenge(array_of_hex<ChallengeBytes>(kOldChallenge)), "0.1.0", kVersion));
  EXPECT_TRUE(names_both(check_hello_prefix(array_of_hex<HelloBytes>(kOldHello).data()), "0.1.0",
                         kVersion));
  EXPECT_TRUE(names_both(decode(array_of_hex<FrameBytes>(kOldFrame)).status(), "version 3",
                         "version " + std::to_string(kFrameVersion)));
}

TEST(RecordedWire, HandlesAreRead) {
  for (const auto& [hex, mode] : {std::pair{kHandle, 0}, {kEncryptedHandle, 1}}) {
    const auto content = decode(handle_of(hex));
    ASSERT_TRUE(content) << content.status().message();
    EXPECT_EQ(content->communicator, kCommunicator);
    EXPECT_EQ(content->comm_id, 0xabcdefu);
    EXPECT_EQ(content->secret, kSecret);
    EXPECT_EQ(content->encryption, mode);
    ASSERT_EQ(content->endpoints.size(), 2u);
    EXPECT_EQ(content->endpoints[0].port, 4711);
    EXPECT_FALSE(content->endpoints[0].is_ipv6);
    EXPECT_EQ(content->endpoints[1].port, 4712);
    EXPECT_TRUE(content->endpoints[1].is_ipv6);
    EXPECT_EQ(encode(*content).bytes, handle_of(hex).bytes);
  }
}

void expect_recorded(const Hello& hello) {
  EXPECT_EQ(hello.communicator, kCommunicator);
  EXPECT_EQ(hello.session, 5u);
  EXPECT_EQ(hello.rank, 3u);
  EXPECT_EQ(hello.stream, 1u);
  EXPECT_EQ(hello.streams, 2u);
}

TEST(RecordedWire, AHandshakeIsAccepted) {
  const auto challenge = array_of_hex<ChallengeBytes>(kChallenge);
  const auto bytes = array_of_hex<HelloBytes>(kHello);
  EXPECT_TRUE(check_challenge(challenge));
  const auto hello = open_hello(bytes, kSecret, challenge);
  ASSERT_TRUE(hello) << hello.status().message();
  expect_recorded(*hello);
  EXPECT_TRUE(check_welcome(array_of_hex<WelcomeBytes>(kWelcome), bytes, kSecret));
  EXPECT_EQ(make_welcome(bytes, kSecret), array_of_hex<WelcomeBytes>(kWelcome));
}

TEST(RecordedWire, FramesAreRead) {
  const auto data = decode(array_of_hex<FrameBytes>(kData));
  ASSERT_TRUE(data) << data.status().message();
  EXPECT_EQ(data->communicator, kCommunicator);
  EXPECT_EQ(data->length, 3u);
  const auto fragment = frame_of<DataFrame>(*data);
  EXPECT_EQ(fragment.chunk, 7u);
  EXPECT_EQ(fragment.offset, 1000u);
  EXPECT_EQ(fragment.total, 262144u);
  EXPECT_EQ(fragment.level, 1);
  EXPECT_EQ(fragment.group, 2);
  EXPECT_EQ(fragment.call, 4097);
  EXPECT_EQ(encode(*data), array_of_hex<FrameBytes>(kData));
  const auto message = decode(array_of_hex<FrameBytes>(kMessage));
  ASSERT_TRUE(message) << message.status().message();
  EXPECT_EQ(frame_of<net::MessageFrame>(*message).receive, 9u);
  EXPECT_EQ(frame_of<net::MessageFrame>(*message).offset, 131072u);
  EXPECT_EQ(message->hints, (RateHints{true, false, true}));
  EXPECT_EQ(decode(array_of_hex<FrameBytes>(kHeartbeat))->type, FrameType::kHeartbeat);
  EXPECT_EQ(decode(array_of_hex<FrameBytes>(kGoodbye))->type, FrameType::kGoodbye);
}

TEST(RecordedWire, AnEncryptedHandshakeAndItsFramesAreRead) {
  const Credentials own(kSecret, with_key());
  const auto challenge = array_of_hex<ChallengeBytes>(kSealedChallenge);
  const auto bytes = array_of_hex<HelloBytes>(kSealedHello);
  EXPECT_TRUE(check_challenge(challenge));
  EXPECT_TRUE(check_offer(challenge, own.offer()));
  const auto hello = open_hello(bytes, own, challenge);
  ASSERT_TRUE(hello) << hello.status().message();
  expect_recorded(*hello);
  const Locked<KeyPair> pair = KeyPair::of(array_of_hex<Key>(kConnectorsSecret));
  EXPECT_EQ(hello->key, pair->public_key());
  const auto keys =
      open_welcome(own, challenge, bytes, pair.get(), array_of_hex<WelcomeBytes>(kSealedWelcome));
  ASSERT_TRUE(keys) << keys.status().message();
  FrameBytes header{};
  ASSERT_TRUE((*keys)->in.open(bytes_of_hex(kSealedHeader),
                               std::as_writable_bytes(std::span(header)).data()));
  EXPECT_EQ(header, array_of_hex<FrameBytes>(kData));
  std::array<char, 4> payload{};
  ASSERT_TRUE((*keys)->in.open(bytes_of_hex(kSealedPayload),
                               std::as_writable_bytes(std::span(payload)).data()));
  EXPECT_STREQ(payload.data(), "abc");
}

}  // namespace
}  // namespace riffle::recorded_wire_test
