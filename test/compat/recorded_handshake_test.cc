// Handles, handshakes and sealed frames as this release sends them (wire-N/handshake-RELEASE.hex):
// still written so, and read as they were meant, whatever the code becomes.
#include <gtest/gtest.h>

#include <string>

#include "plugin/transport/base/handle.h"
#include "plugin/transport/crypto/key_file.h"
#include "plugin/transport/handshake/link_keys.h"
#include "plugin/version.h"
#include "test/compat/samples.h"

namespace riffle::compat::recorded_handshake_test {
namespace {

const Secret kSecret = {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
                        0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f};
constexpr char kConnectorsSecret[] =
    "0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
const Hello kHello = {
    .communicator = 0x1122334455667788, .session = 5, .rank = 3, .stream = 1, .streams = 2};

// Where fresh numbers stand, and what is made of them.
constexpr std::size_t kChallengeNonceAt = 16, kHelloNonceAt = 32, kNonceBytes = 16, kMacBytes = 32;

HandleContent content(EncryptionMode mode) {
  Endpoint v4 = {.address = {10, 0, 0, 7}, .port = 4711};
  Endpoint v6 = {.address = {0xfd}, .port = 4712, .is_ipv6 = true};
  v6.address[15] = 9;
  return {.communicator = kHello.communicator,
          .comm_id = 0xabcdef,
          .plugin_version = kPluginVersion,
          .secret = kSecret,
          .encryption = static_cast<std::uint8_t>(mode),
          .endpoints = {v4, v6}};
}

EncryptionOptions with_key(CipherSet ciphers) {
  const std::vector<std::uint8_t> key(32, 'k');
  return {.is_on = true, .key = std::make_shared<const PresharedKey>(key), .ciphers = ciphers};
}
// AES at the connector alone.
Credentials listener() { return {kSecret, with_key(set_of(Cipher::kChaCha20Poly1305))}; }
Credentials connector() {
  return {kSecret, with_key(static_cast<CipherSet>(set_of(Cipher::kChaCha20Poly1305) |
                                                   set_of(Cipher::kAes256Gcm)))};
}
Locked<KeyPair> connectors_pair() { return KeyPair::of(array_of_hex<Key>(kConnectorsSecret)); }

Hello hello_of(const Credentials& own) {
  Hello hello = kHello;
  if (own.encrypts()) {
    hello.ciphers = own.offer().ciphers;
    hello.key = connectors_pair()->public_key();
  }
  return hello;
}

// One frame header, and a payload of three letters.
FrameBytes header() {
  FrameHeader header;
  header.communicator = kHello.communicator;
  header.length = 3;
  return encode(header);
}
Bytes sealed(RecordCipher& out, const Bytes& plain) {
  Bytes bytes(plain.size() + kTagBytes);
  out.seal(std::as_bytes(std::span(plain)), std::as_writable_bytes(std::span(bytes)).data());
  return bytes;
}

// What a release that has no records yet sends.
Named handshake_of_today() {
  const Credentials plain(kSecret);
  const ChallengeBytes challenge = make_challenge(plain.offer());
  const HelloBytes hello = make_hello(kHello, plain, challenge);
  const Credentials own = listener();
  const ChallengeBytes sealed_challenge = make_challenge(own.offer());
  const Credentials peer = connector();
  const HelloBytes sealed_hello = make_hello(hello_of(peer), peer, sealed_challenge);
  auto answered =
      answer(own, sealed_challenge, sealed_hello, *open_hello(sealed_hello, own, sealed_challenge));
  RecordCipher& out = (*answered).keys->out;
  return {{"handle", bytes_of(encode(content(EncryptionMode::kOff)).bytes)},
          {"encrypted_handle", bytes_of(encode(content(EncryptionMode::kOn)).bytes)},
          {"challenge", bytes_of(challenge)},
          {"hello", bytes_of(hello)},
          {"welcome", bytes_of(make_welcome(hello, kSecret))},
          {"sealed_challenge", bytes_of(sealed_challenge)},
          {"sealed_hello", bytes_of(sealed_hello)},
          {"sealed_welcome", bytes_of(answered->welcome)},
          {"sealed_header", sealed(out, bytes_of(header()))},
          {"sealed_payload", sealed(out, {'a', 'b', 'c'})}};
}

const Records& records() {
  static const Records all =
      records_of_today("handshake-" + std::string(kVersion), handshake_of_today);
  return all;
}

template <class Array>
Array with_bytes_of(Array bytes, const Array& other, std::size_t at, std::size_t size) {
  std::copy_n(other.begin() + static_cast<std::ptrdiff_t>(at), size,
              bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return bytes;
}

void expect_written(const Credentials& own, const Credentials& peer, const std::string& name) {
  const auto challenge = records().array<ChallengeBytes>(name + "challenge");
  EXPECT_EQ(with_bytes_of(make_challenge(own.offer()), challenge, kChallengeNonceAt, kNonceBytes),
            challenge);
  const auto hello = records().array<HelloBytes>(name + "hello");
  HelloBytes made = make_hello(hello_of(peer), peer, challenge);
  made = with_bytes_of(made, hello, kHelloNonceAt, kNonceBytes);
  EXPECT_EQ(with_bytes_of(made, hello, kHelloBytes - kMacBytes, kMacBytes), hello);
}

void expect_read(const Credentials& own, const Credentials& peer, const std::string& name) {
  const auto challenge = records().array<ChallengeBytes>(name + "challenge");
  EXPECT_TRUE(check_challenge(challenge));
  EXPECT_TRUE(check_offer(challenge, peer.offer()));
  const auto hello = open_hello(records().array<HelloBytes>(name + "hello"), own, challenge);
  ASSERT_TRUE(hello) << hello.status().message();
  EXPECT_EQ(hello->communicator, kHello.communicator);
  EXPECT_EQ(hello->session, kHello.session);
  EXPECT_EQ(hello->rank, kHello.rank);
  EXPECT_EQ(hello->stream, kHello.stream);
  EXPECT_EQ(hello->streams, kHello.streams);
  EXPECT_EQ(hello->key, hello_of(peer).key);
  EXPECT_EQ(hello->ciphers, hello_of(peer).ciphers);
}

TEST(RecordedHandshake, HandlesAreWrittenAndRead) {
  for (const auto& [name, mode] :
       {std::pair{"handle", EncryptionMode::kOff}, {"encrypted_handle", EncryptionMode::kOn}}) {
    Handle handle;
    handle.bytes = records().array<decltype(handle.bytes)>(name);
    EXPECT_EQ(encode(content(mode)).bytes, handle.bytes) << name;
    const auto read = decode(handle);
    ASSERT_TRUE(read) << read.status().message();
    EXPECT_EQ(read->secret, kSecret);
    EXPECT_EQ(read->encryption, static_cast<std::uint8_t>(mode));
    EXPECT_EQ(read->endpoints.at(1).port, 4712);
    EXPECT_EQ(encode(*read).bytes, handle.bytes) << name;
  }
}

TEST(RecordedHandshake, APlainOneIsWrittenAndRead) {
  expect_written(kSecret, kSecret, "");
  expect_read(kSecret, kSecret, "");
  const auto hello = records().array<HelloBytes>("hello");
  const auto welcome = records().array<WelcomeBytes>("welcome");
  EXPECT_EQ(make_welcome(hello, kSecret), welcome);
  EXPECT_TRUE(check_welcome(welcome, hello, kSecret));
}

TEST(RecordedHandshake, AnEncryptedOneAndItsFramesAreWrittenAndRead) {
  expect_written(listener(), connector(), "sealed_");
  expect_read(listener(), connector(), "sealed_");
  const auto keys =
      open_welcome(connector(), records().array<ChallengeBytes>("sealed_challenge"),
                   records().array<HelloBytes>("sealed_hello"), connectors_pair().get(),
                   records().array<WelcomeBytes>("sealed_welcome"));
  ASSERT_TRUE(keys) << keys.status().message();
  RecordCipher& in = (*keys)->in;
  FrameBytes plain{};
  const Bytes& sealed_header = records().at("sealed_header");
  ASSERT_TRUE(in.open(std::as_bytes(std::span(sealed_header)),
                      std::as_writable_bytes(std::span(plain)).data()));
  const auto read = decode(plain);
  ASSERT_TRUE(read) << read.status().message();
  EXPECT_EQ(read->communicator, kHello.communicator);
  EXPECT_EQ(read->length, 3u);
  std::array<char, 4> payload{};
  const Bytes& sealed_payload = records().at("sealed_payload");
  ASSERT_LE(sealed_payload.size(), payload.size() + kTagBytes);
  ASSERT_TRUE(in.open(std::as_bytes(std::span(sealed_payload)),
                      std::as_writable_bytes(std::span(payload)).data()));
  EXPECT_STREQ(payload.data(), "abc");
}

}  // namespace
}  // namespace riffle::compat::recorded_handshake_test
