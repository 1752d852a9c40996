// The three messages by which two processes prove to each other that NCCL's bootstrap told them the
// same secret, before either trusts a byte of the other:
//
//   listener  -> CHALLENGE { magic, plugin version, wire version, offer, nonce }
//   connector -> HELLO     { magic, plugin version, communicator, session, rank, stream, streams,
//                            nonce, offer, public key, MAC over all of it and the challenge }
//   listener  -> WELCOME   { magic, cipher, public key, MAC over it and the connector's HELLO }
//
// MAC: BLAKE2b-256 keyed with the secret (libsodium's crypto_generichash). Both nonces are fresh,
// so nothing recorded can be replayed. Magic and plugin version stay the first 8 bytes of every
// version. Pure functions; the sockets are in acceptor.h and connector.h.
//
// Encryption (RIFFLE_ENCRYPT): offers name what each side was told to do and the ciphers that it
// has; the MACs cover both. The key of HELLO's MAC is then made of the secret and RIFFLE_KEY_FILE,
// that of WELCOME's and those of the records of that, the exchanged public keys (X25519) and all
// three messages (link_keys.h). Without encryption offer, cipher and public keys are zero.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plugin/transport/base/encryption.h"
#include "plugin/transport/base/handle.h"
#include "plugin/transport/crypto/cipher.h"
#include "plugin/transport/crypto/locked.h"
#include "topology/base/status.h"

namespace riffle {

inline constexpr std::size_t kChallengeBytes = 32;
inline constexpr std::size_t kHelloBytes = 120;
inline constexpr std::size_t kWelcomeBytes = 72;
inline constexpr std::size_t kVersionPrefixBytes = 8;  // magic and plugin version
using ChallengeBytes = std::array<std::uint8_t, kChallengeBytes>;
using HelloBytes = std::array<std::uint8_t, kHelloBytes>;
using WelcomeBytes = std::array<std::uint8_t, kWelcomeBytes>;

// What one side was told about encryption, and can do.
struct EncryptionOffer {
  EncryptionMode mode = EncryptionMode::kOff;
  CipherSet ciphers = 0;
};

// What one side knows and offers. Holds a key. Any thread.
class Credentials {
 public:
  Credentials(const Secret& secret, const EncryptionOptions& encryption = {});  // NOLINT: implicit
  ByteView proof_key() const { return encrypts() ? ByteView(*key_) : ByteView(secret_); }
  const EncryptionOffer& offer() const { return offer_; }
  bool encrypts() const { return offer_.mode != EncryptionMode::kOff; }

 private:
  const Secret secret_;
  Locked<Key> key_;  // with encryption
  EncryptionOffer offer_;
};

struct Hello {
  std::uint64_t communicator = 0;
  std::uint64_t session = 0;  // the same for all streams of one connector
  std::uint32_t rank = 0;
  std::uint16_t stream = 0;
  std::uint16_t streams = 1;
  CipherSet ciphers = 0;  // the rest of the offer is as the credentials'
  PublicKey key{};
};

ChallengeBytes make_challenge(const EncryptionOffer& offer = {});
// Magic, wire version and plugin version as expected? The message names both versions.
Status check_challenge(const ChallengeBytes& challenge);
// Is the listener told about encryption what this side is? The message names both.
Status check_offer(const ChallengeBytes& challenge, const EncryptionOffer& own);
CipherSet ciphers_of(const ChallengeBytes& challenge);

HelloBytes make_hello(const Hello& hello, const Credentials& own, const ChallengeBytes& challenge);
// For the first 8 bytes of a HELLO: refuse strangers and other versions before waiting for the
// rest.
Status check_hello_prefix(const std::uint8_t* bytes);
Result<Hello> open_hello(const HelloBytes& bytes, const Credentials& own,
                         const ChallengeBytes& challenge);

struct Welcome {
  Cipher cipher = Cipher::kNone;
  PublicKey key{};
};

// The first bytes of a WELCOME, without its MAC.
using WelcomeHead = std::array<std::uint8_t, kWelcomeBytes - kKeyBytes>;
WelcomeHead head_of(const Welcome& welcome);
Welcome claim_of(const WelcomeBytes& bytes);  // nothing of it is proved

WelcomeBytes make_welcome(const HelloBytes& hello, ByteView proof_key, const Welcome& welcome = {});
Status check_welcome(const WelcomeBytes& bytes, const HelloBytes& hello, ByteView proof_key);

// The mark of the connection that a WELCOME begins: of its MAC, which covers all three messages.
std::array<std::uint8_t, 16> mark_of(const WelcomeBytes& welcome);

}  // namespace riffle
