#include "plugin/transport/tcp/handshake.h"

#include <sodium.h>

#include <algorithm>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/random.h"
#include "plugin/transport/base/wire.h"
#include "plugin/version.h"

namespace riffle {
namespace {

constexpr std::uint32_t kChallengeMagic = 0x434c4652;  // "RFLC"
constexpr std::uint32_t kHelloMagic = 0x4f4c4652;      // "RFLO"
constexpr std::uint32_t kWelcomeMagic = 0x574c4652;    // "RFLW"
constexpr std::size_t kMacBytes = 32;
constexpr std::size_t kNonceBytes = 16;
static_assert(kSecretBytes >= crypto_generichash_KEYBYTES_MIN);

// Offsets within CHALLENGE (nonce at 16) and HELLO.
enum : std::size_t {
  kHelloVersionAt = 4,
  kWireVersionAt = 8,
  kChallengeNonceAt = 16,
  kHelloCommunicatorAt = 8,
  kSessionAt = 16,
  kRankAt = 24,
  kStreamAt = 28,
  kStreamsAt = 30,
  kHelloNonceAt = 32,
  kHelloMacAt = kHelloNonceAt + kNonceBytes,
};
static_assert(kHelloMacAt + kMacBytes == kHelloBytes);

using Mac = std::array<std::uint8_t, kMacBytes>;

Mac hello_mac(const HelloBytes& hello, const Secret& secret, const ChallengeBytes& challenge) {
  Mac mac;
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret.data(), secret.size(), mac.size());
  crypto_generichash_update(&state, challenge.data(), challenge.size());
  crypto_generichash_update(&state, hello.data(), kHelloMacAt);
  crypto_generichash_final(&state, mac.data(), mac.size());
  return mac;
}

Mac welcome_mac(const HelloBytes& hello, const Secret& secret) {
  Mac mac;
  std::array<std::uint8_t, 4> magic;
  put(magic.data(), kWelcomeMagic);
  crypto_generichash_state state;
  crypto_generichash_init(&state, secret.data(), secret.size(), mac.size());
  crypto_generichash_update(&state, magic.data(), magic.size());
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

ChallengeBytes make_challenge() {
  ChallengeBytes bytes{};
  put(bytes.data(), kChallengeMagic);
  put(&bytes[kHelloVersionAt], kPluginVersion);
  bytes[kWireVersionAt] = kFrameVersion;
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

HelloBytes make_hello(const Hello& hello, const Secret& secret, const ChallengeBytes& challenge) {
  HelloBytes bytes{};
  put(bytes.data(), kHelloMagic);
  put(&bytes[kHelloVersionAt], kPluginVersion);
  put(&bytes[kHelloCommunicatorAt], hello.communicator);
  put(&bytes[kSessionAt], hello.session);
  put(&bytes[kRankAt], hello.rank);
  put(&bytes[kStreamAt], hello.stream);
  put(&bytes[kStreamsAt], hello.streams);
  fill_random(&bytes[kHelloNonceAt], kNonceBytes);
  const Mac mac = hello_mac(bytes, secret, challenge);
  std::copy(mac.begin(), mac.end(), &bytes[kHelloMacAt]);
  return bytes;
}

Status check_hello_prefix(const std::uint8_t* bytes) { return check_version(bytes, kHelloMagic); }

Result<Hello> open_hello(const HelloBytes& bytes, const Secret& secret,
                         const ChallengeBytes& challenge) {
  if (Status s = check_hello_prefix(bytes.data()); !s) return s;
  const Mac mac = hello_mac(bytes, secret, challenge);
  if (sodium_memcmp(mac.data(), &bytes[kHelloMacAt], mac.size()) != 0) {
    return remote_error("it does not know this communicator's secret");
  }
  Hello hello;
  hello.communicator = get<std::uint64_t>(&bytes[kHelloCommunicatorAt]);
  hello.session = get<std::uint64_t>(&bytes[kSessionAt]);
  hello.rank = get<std::uint32_t>(&bytes[kRankAt]);
  hello.stream = get<std::uint16_t>(&bytes[kStreamAt]);
  hello.streams = get<std::uint16_t>(&bytes[kStreamsAt]);
  return hello;
}

WelcomeBytes make_welcome(const HelloBytes& hello, const Secret& secret) {
  WelcomeBytes bytes;
  put(bytes.data(), kWelcomeMagic);
  const Mac mac = welcome_mac(hello, secret);
  std::copy(mac.begin(), mac.end(), &bytes[4]);
  return bytes;
}

Status check_welcome(const WelcomeBytes& welcome, const HelloBytes& hello, const Secret& secret) {
  const Mac mac = welcome_mac(hello, secret);
  if (get<std::uint32_t>(welcome.data()) != kWelcomeMagic ||
      sodium_memcmp(mac.data(), &welcome[4], mac.size()) != 0) {
    return remote_error("its welcome does not prove that it knows the secret");
  }
  return Status::ok();
}

}  // namespace riffle
