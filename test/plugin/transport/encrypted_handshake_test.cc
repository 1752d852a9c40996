// How two ends come to the keys of one stream, and who does not.
#include <gtest/gtest.h>

#include <string>

#include "plugin/transport/crypto/key_file.h"
#include "plugin/transport/handshake/link_keys.h"

namespace riffle::encrypted_handshake_test {
namespace {

const Secret kSecret = {1, 2, 3, 4, 5, 6, 7, 8};
const Hello kHello = {.communicator = 77, .session = 5, .rank = 3, .stream = 1, .streams = 2};
constexpr CipherSet kChaCha = set_of(Cipher::kChaCha20Poly1305);

EncryptionOptions encryption(CipherSet ciphers = 0, const std::string& key = "") {
  EncryptionOptions options = {.is_on = true, .ciphers = ciphers};
  if (!key.empty()) {
    const ByteView bytes(reinterpret_cast<const std::uint8_t*>(key.data()), key.size());
    options.key = std::make_shared<const PresharedKey>(bytes);
  }
  return options;
}

// What one end tells the other may be changed on its way.
using Change = std::function<void(std::span<std::uint8_t>)>;

struct Handshake {
  explicit Handshake(const EncryptionOptions& listener, const EncryptionOptions& connector,
                     const Secret& connectors_secret = kSecret)
      : listener_(kSecret, listener), connector_(connectors_secret, connector) {}

  // ok: both ends went through with it.
  Status run(const Change& change_challenge = {}, const Change& change_hello = {},
             const Change& change_welcome = {}) {
    challenge = make_challenge(listener_.offer());
    ChallengeBytes heard = challenge;
    if (change_challenge) change_challenge(heard);
    if (Status s = check_challenge(heard); !s) return s;
    if (Status s = check_offer(heard, connector_.offer()); !s) return s;
    Hello own = kHello;
    pair = add_key(connector_, &own);
    hello = make_hello(own, connector_, heard);
    HelloBytes came = hello;
    if (change_hello) change_hello(came);
    const Result<Hello> opened = open_hello(came, listener_, challenge);
    if (!opened) return opened.status();
    Result<Answer> answered = answer(listener_, challenge, came, *opened);
    if (!answered) return answered.status();
    welcome = answered->welcome;
    if (change_welcome) change_welcome(welcome);
    auto keys = open_welcome(connector_, heard, hello, pair.get(), welcome);
    if (!keys) return keys.status();
    at_listener = std::move(answered->keys);
    at_connector = std::move(*keys);
    return Status::ok();
  }

  Credentials listener_, connector_;
  ChallengeBytes challenge{};
  HelloBytes hello{};
  WelcomeBytes welcome{};
  Locked<KeyPair> pair;
  StreamKeysPtr at_listener, at_connector;
};

bool opens(RecordCipher& out, RecordCipher& in) {
  std::array<std::byte, 9> text{std::byte{42}}, opened{};
  std::array<std::byte, 9 + kTagBytes> sealed;
  out.seal(text, sealed.data());
  return in.open(sealed, opened.data()) && opened == text;
}

bool names(const Status& status, const std::string& part) {
  return status.message().find(part) != std::string::npos;
}

TEST(EncryptedHandshake, BothEndsHaveTheSameKeysAndEachDirectionItsOwn) {
  Handshake h(encryption(), encryption());
  ASSERT_TRUE(h.run());
  EXPECT_TRUE(opens(h.at_connector->out, h.at_listener->in));
  EXPECT_TRUE(opens(h.at_listener->out, h.at_connector->in));
  Handshake mirror(encryption(), encryption());
  ASSERT_TRUE(mirror.run());
  EXPECT_FALSE(opens(mirror.at_connector->out, mirror.at_connector->in)) << "sent back";
}

TEST(EncryptedHandshake, EveryConnectionHasKeysOfItsOwn) {
  Handshake one(encryption(), encryption()), two(encryption(), encryption());
  ASSERT_TRUE(one.run() && two.run());
  EXPECT_FALSE(opens(one.at_connector->out, two.at_listener->in));
}

TEST(EncryptedHandshake, WithoutEncryptionThereAreNoKeys) {
  Handshake h({}, {});
  ASSERT_TRUE(h.run());
  EXPECT_EQ(h.at_listener, nullptr);
  EXPECT_EQ(h.at_connector, nullptr);
}

TEST(EncryptedHandshake, TakesTheBestCipherOfBoth) {
  for (const CipherSet listener : {CipherSet{0}, kChaCha}) {
    for (const CipherSet connector : {CipherSet{0}, kChaCha}) {
      Handshake h(encryption(listener), encryption(connector));
      ASSERT_TRUE(h.run());
      const Cipher best = choose_cipher(listener == 0 ? own_ciphers() : listener,
                                        connector == 0 ? own_ciphers() : connector);
      EXPECT_EQ(h.at_listener->out.cipher(), best);
      EXPECT_EQ(h.at_connector->out.cipher(), best);
      EXPECT_TRUE(opens(h.at_connector->out, h.at_listener->in));
    }
  }
}

TEST(EncryptedHandshake, EveryFlippedBitOfEveryMessageIsRefused) {
  const auto flipped = [](std::size_t bit) {
    return [bit](std::span<std::uint8_t> bytes) {
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ 1u << bit % 8);
    };
  };
  Handshake h(encryption(0, "key"), encryption(0, "key"));
  for (std::size_t bit = 0; bit < 8 * kChallengeBytes; ++bit) {
    ASSERT_FALSE(h.run(flipped(bit))) << "challenge " << bit;
  }
  for (std::size_t bit = 0; bit < 8 * kHelloBytes; ++bit) {
    ASSERT_FALSE(h.run({}, flipped(bit))) << "hello " << bit;
  }
  for (std::size_t bit = 0; bit < 8 * kWelcomeBytes; ++bit) {
    ASSERT_FALSE(h.run({}, {}, flipped(bit))) << "welcome " << bit;
  }
  EXPECT_TRUE(h.run());
}

TEST(EncryptedHandshake, NoMessageServesTwice) {
  Handshake recorded(encryption(), encryption()), next(encryption(), encryption());
  ASSERT_TRUE(recorded.run());
  const auto repeat = [](const auto& message) {
    return [&message](std::span<std::uint8_t> bytes) {
      std::copy(message.begin(), message.end(), bytes.begin());
    };
  };
  EXPECT_FALSE(next.run(repeat(recorded.challenge)));
  EXPECT_FALSE(next.run({}, repeat(recorded.hello)));
  EXPECT_FALSE(next.run({}, {}, repeat(recorded.welcome)));
  EXPECT_TRUE(next.run());
}

// An attacker who may write both messages cannot talk the ends into the weaker offer.
TEST(EncryptedHandshake, ChangedOffersAreRefused) {
  constexpr std::size_t kChallengeCiphersAt = 10, kHelloCiphersAt = 49;
  Handshake h(encryption(), encryption());
  EXPECT_FALSE(h.run([](auto bytes) { bytes[kChallengeCiphersAt] = 0; }));
  EXPECT_FALSE(h.run({}, [](auto bytes) { bytes[kHelloCiphersAt] = 0; }));
}

TEST(EncryptedHandshake, TheSecretIsNeeded) {
  Handshake h(encryption(), encryption(), {9});
  EXPECT_TRUE(names(h.run(), "does not know this communicator's secret"));
}

TEST(EncryptedHandshake, ThePresharedKeyIsNeeded) {
  EXPECT_TRUE(Handshake(encryption(0, "one"), encryption(0, "one")).run());
  EXPECT_TRUE(names(Handshake(encryption(0, "one"), encryption(0, "two")).run(),
                    "its RIFFLE_KEY_FILE holds another key"));
  // Both have the secret, so it is the key that keeps them apart.
  Handshake on(encryption(0, "one"), encryption());
  EXPECT_TRUE(names(on.run(),
                    "it has RIFFLE_ENCRYPT=1 with RIFFLE_KEY_FILE, this node has RIFFLE_ENCRYPT=1 "
                    "without RIFFLE_KEY_FILE: all nodes must have the same"));
}

TEST(EncryptedHandshake, ANodeThatDoesNotEncryptIsNamedOnBothSides) {
  const std::string plain = "RIFFLE_ENCRYPT=0", sealed = "RIFFLE_ENCRYPT=1 without RIFFLE_KEY_FILE";
  EXPECT_TRUE(
      names(Handshake({}, encryption()).run(), "it has " + plain + ", this node has " + sealed));
  EXPECT_TRUE(
      names(Handshake(encryption(), {}).run(), "it has " + sealed + ", this node has " + plain));
  // At the listener, where the connector's HELLO arrives all the same.
  const Credentials listener(kSecret, encryption()), connector(kSecret);
  const ChallengeBytes challenge = make_challenge(listener.offer());
  const Status s =
      open_hello(make_hello(kHello, connector, challenge), listener, challenge).status();
  EXPECT_TRUE(names(s, "it has " + plain + ", this node has " + sealed)) << s.message();
}

}  // namespace
}  // namespace riffle::encrypted_handshake_test
