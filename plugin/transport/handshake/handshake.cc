#include "plugin/transport/handshake/handshake.h"

#include <sodium.h>

#include <algorithm>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/base/wire.h"
#include "plugin/transport/crypto/key_file.h"
#include "plugin/version.h"

namespace riffle {
namespace {

constexpr std::uint32_t kChallengeMagic = 0x434c4652;  // "RFLC"
constexpr std::uint32_t kHelloMagic = 0x4f4c4652;      // "RFLO"
constexpr std::uint32_t kWelcomeMagic = 0x574c4652;    // "RFLW"
constexpr std::size_t kMacBytes = 32;
constexpr std::size_t kNonceBytes = 16;
static_assert(kSecretBytes >= crypto_generichash_KEYBYTES_MIN && kSecretBytes <= kKeyBytes);

// Offsets within CHALLENGE, HELLO and WELCOME; what lies between is zero.
enum : std::size_t {
  kHelloVersionAt = 4,
  kWireVersionAt = 8,
  kChallengeModeAt = 9,
  kChallengeCiphersAt = 10,
  kChallengeNonceAt = 16,
  kHelloCommunicatorAt = 8,
  kSessionAt = 16,
  kRankAt = 24,
  kStreamAt = 28,
  kStreamsAt = 30,
  kHelloNonceAt = 32,
  kHelloModeAt = kHelloNonceAt + kNonceBytes,
  kHelloCiphersAt,
  kHelloKeyAt = kHelloModeAt + 8,
  kHelloMacAt = kHelloKeyAt + kKeyBytes,
  kWelcomeCipherAt = 4,
  kWelcomeKeyAt = 8,
  kWelcomeMacAt = kWelcomeKeyAt + kKeyBytes,
};
static_assert(kHelloMacAt + kMacBytes == kHelloBytes);
static_assert(kWelcomeMacAt + kMacBytes == kWelcomeBytes);

using Mac = std::array<std::uint8_t, kMacBytes>;

Mac hello_mac(const HelloBytes& hello, ByteView key, const ChallengeBytes& challenge) {
  Mac mac;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), mac.size());
  crypto_generichash_update(&state, challenge.data(), challenge.size());
  crypto_generichash_update(&state, hello.data(), kHelloMacAt);
  crypto_generichash_final(&state, mac.data(), mac.size());
  return mac;
}

Mac welcome_mac(const WelcomeHead& head, const HelloBytes& hello, ByteView key) {
  Mac mac;
  crypto_generichash_state state;
  crypto_generichash_init(&state, key.data(), key.size(), mac.size());
  crypto_generichash_update(&state, head.data(), head.size());
  crypto_generichash_update(&state, hello.data(), hello.size());
  crypto_generichash_final(&state, mac.data(), mac.size());
  return mac;
}

Status check_version(const std::uint8_t* bytes, std::uint32_t magic) {
  if (get<std::uint32_t>(bytes) != magic) {
    return remote_error("it does not speak Riffle's protocol (wrong magic number)");
  }
  const auto version = get<std::uint32_t>(bytes + kHelloVersionAt);
  if (version != kPluginVersion) {
    return remote_error("it runs Riffle " + version_text(version) + ", this node runs " +
                        version_text(kPluginVersion) + ": install the same version on all nodes");
  }
  return Status::ok();
}

}  // namespace

Credentials::Credentials(const Secret& secret, const EncryptionOptions& encryption)
    : secret_(secret) {
  offer_.mode = mode_of(encryption);
  if (!encrypts()) return;
  offer_.ciphers = encryption.ciphers != 0 ? encryption.ciphers : own_ciphers();
  key_ = make_locked<Key>();
  const ByteView preshared = encryption.key != nullptr ? encryption.key->bytes() : ByteView();
  derive_key(preshared, "riffle proof", {secret}, key_.get());
}

ChallengeBytes make_challenge(const EncryptionOffer& offer) {
  ChallengeBytes bytes{};
  put(bytes.data(), kChallengeMagic);
  put(&bytes[kHelloVersionAt], kPluginVersion);
  bytes[kWireVersionAt] = kFrameVersion;
  bytes[kChallengeModeAt] = static_cast<std::uint8_t>(offer.mode);
  bytes[kChallengeCiphersAt] = offer.ciphers;
  fill_random(&bytes[kChallengeNonceAt], kNonceBytes);
  return bytes;
}

Status check_challenge(const ChallengeBytes& challenge) {
  if (Status s = check_version(challenge.data(), kChallengeMagic); !s) return s;
  if (challenge[kWireVersionAt] != kFrameVersion) {
    return remote_error("it speaks wire version " + std::to_string(challenge[kWireVersionAt]) +
                        ", this node speaks " + std::to_string(kFrameVersion) +
                        ": install the same version on all nodes");
  }
  return Status::ok();
}

Status check_offer(const ChallengeBytes& challenge, const EncryptionOffer& own) {
  return check_same_mode(challenge[kChallengeModeAt], own.mode);
}

CipherSet ciphers_of(const ChallengeBytes& challenge) { return challenge[kChallengeCiphersAt]; }

HelloBytes make_hello(const Hello& hello, const Credentials& own, const ChallengeBytes& challenge) {
  HelloBytes bytes{};
  put(bytes.data(), kHelloMagic);
  put(&bytes[kHelloVersionAt], kPluginVersion);
  put(&bytes[kHelloCommunicatorAt], hello.communicator);
  put(&bytes[kSessionAt], hello.session);
  put(&bytes[kRankAt], hello.rank);
  put(&bytes[kStreamAt], hello.stream);
  put(&bytes[kStreamsAt], hello.streams);
  fill_random(&bytes[kHelloNonceAt], kNonceBytes);
  bytes[kHelloModeAt] = static_cast<std::uint8_t>(own.offer().mode);
  bytes[kHelloCiphersAt] = hello.ciphers;
  std::copy(hello.key.begin(), hello.key.end(), &bytes[kHelloKeyAt]);
  const Mac mac = hello_mac(bytes, own.proof_key(), challenge);
  std::copy(mac.begin(), mac.end(), &bytes[kHelloMacAt]);
  return bytes;
}

Status check_hello_prefix(const std::uint8_t* bytes) { return check_version(bytes, kHelloMagic); }

Result<Hello> open_hello(const HelloBytes& bytes, const Credentials& own,
                         const ChallengeBytes& challenge) {
  if (Status s = check_hello_prefix(bytes.data()); !s) return s;
  const EncryptionMode mode = own.offer().mode;
  if (Status s = check_same_mode(bytes[kHelloModeAt], mode); !s) return s;
  const Mac mac = hello_mac(bytes, own.proof_key(), challenge);
  if (sodium_memcmp(mac.data(), &bytes[kHelloMacAt], mac.size()) != 0) {
    return remote_error(mode == EncryptionMode::kOnWithKey
                            ? "it does not know this communicator's secret, or its RIFFLE_KEY_FILE "
                              "holds another key"
                            : "it does not know this communicator's secret");
  }
  Hello hello;
  hello.communicator = get<std::uint64_t>(&bytes[kHelloCommunicatorAt]);
  hello.session = get<std::uint64_t>(&bytes[kSessionAt]);
  hello.rank = get<std::uint32_t>(&bytes[kRankAt]);
  hello.stream = get<std::uint16_t>(&bytes[kStreamAt]);
  hello.streams = get<std::uint16_t>(&bytes[kStreamsAt]);
  hello.ciphers = bytes[kHelloCiphersAt];
  std::copy_n(&bytes[kHelloKeyAt], hello.key.size(), hello.key.begin());
  return hello;
}

WelcomeHead head_of(const Welcome& welcome) {
  WelcomeHead head{};
  put(head.data(), kWelcomeMagic);
  head[kWelcomeCipherAt] = static_cast<std::uint8_t>(welcome.cipher);
  std::copy(welcome.key.begin(), welcome.key.end(), &head[kWelcomeKeyAt]);
  return head;
}

Welcome claim_of(const WelcomeBytes& bytes) {
  Welcome welcome;
  welcome.cipher = static_cast<Cipher>(bytes[kWelcomeCipherAt]);
  std::copy_n(&bytes[kWelcomeKeyAt], welcome.key.size(), welcome.key.begin());
  return welcome;
}

WelcomeBytes make_welcome(const HelloBytes& hello, ByteView proof_key, const Welcome& welcome) {
  WelcomeBytes bytes;
  const WelcomeHead head = head_of(welcome);
  std::copy(head.begin(), head.end(), bytes.begin());
  const Mac mac = welcome_mac(head, hello, proof_key);
  std::copy(mac.begin(), mac.end(), &bytes[kWelcomeMacAt]);
  return bytes;
}

Status check_welcome(const WelcomeBytes& bytes, const HelloBytes& hello, ByteView proof_key) {
  WelcomeHead head;
  std::copy_n(bytes.begin(), head.size(), head.begin());
  const Mac mac = welcome_mac(head, hello, proof_key);
  if (get<std::uint32_t>(bytes.data()) != kWelcomeMagic ||
      sodium_memcmp(mac.data(), &bytes[kWelcomeMacAt], mac.size()) != 0) {
    return remote_error("its welcome does not prove that it knows the secret");
  }
  return Status::ok();
}

std::array<std::uint8_t, 16> mark_of(const WelcomeBytes& welcome) {
  std::array<std::uint8_t, 16> mark;
  std::copy_n(&welcome[kWelcomeMacAt], mark.size(), mark.begin());
  return mark;
}

}  // namespace riffle
