// The three messages by which two processes prove to each other that NCCL's bootstrap told them the
// same secret, before either trusts a byte of the other:
//
//   listener  -> CHALLENGE { magic, wire version, plugin version, nonce }
//   connector -> HELLO     { magic, plugin version, communicator, session, rank, stream, streams,
//                            nonce, MAC over all of it and the challenge }
//   listener  -> WELCOME   { magic, MAC over the connector's HELLO }
//
// MAC: BLAKE2b-256 keyed with the secret (libsodium's crypto_generichash). Both nonces are fresh,
// so nothing recorded can be replayed. Magic and plugin version stay the first 8 bytes of every
// version. Pure functions; the sockets are in acceptor.h and connector.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "plugin/transport/base/handle.h"
#include "topology/base/status.h"

namespace riffle {

inline constexpr std::size_t kChallengeBytes = 32;
inline constexpr std::size_t kHelloBytes = 80;
inline constexpr std::size_t kWelcomeBytes = 36;
inline constexpr std::size_t kVersionPrefixBytes = 8;  // magic and plugin version
using ChallengeBytes = std::array<std::uint8_t, kChallengeBytes>;
using HelloBytes = std::array<std::uint8_t, kHelloBytes>;
using WelcomeBytes = std::array<std::uint8_t, kWelcomeBytes>;

struct Hello {
  std::uint64_t communicator = 0;
  std::uint64_t session = 0;  // the same for all streams of one connector
  std::uint32_t rank = 0;
  std::uint16_t stream = 0;
  std::uint16_t streams = 1;
};

ChallengeBytes make_challenge();
// Magic, wire version and plugin version as expected? The message names both versions.
Status check_challenge(const ChallengeBytes& challenge);

HelloBytes make_hello(const Hello& hello, const Secret& secret, const ChallengeBytes& challenge);
// For the first 8 bytes of a HELLO: refuse strangers and other versions before waiting for the
// rest.
Status check_hello_prefix(const std::uint8_t* bytes);
Result<Hello> open_hello(const HelloBytes& bytes, const Secret& secret,
                         const ChallengeBytes& challenge);

WelcomeBytes make_welcome(const HelloBytes& hello, const Secret& secret);
Status check_welcome(const WelcomeBytes& welcome, const HelloBytes& hello, const Secret& secret);

}  // namespace riffle
