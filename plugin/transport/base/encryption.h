// What RIFFLE_ENCRYPT and RIFFLE_KEY_FILE ask for, as every node says it in its handles and
// handshakes: nodes that differ refuse each other, so that nothing is ever silently plain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "topology/base/status.h"

namespace riffle {

class PresharedKey;  // transport/crypto/key_file.h

enum class EncryptionMode : std::uint8_t { kOff = 0, kOn = 1, kOnWithKey = 2 };

struct EncryptionOptions {
  bool is_on = false;
  std::shared_ptr<const PresharedKey> key;  // null: none was given
  std::uint8_t ciphers = 0;                 // a CipherSet to offer; 0: all that this machine has
};

EncryptionMode mode_of(const EncryptionOptions& options);

// ok iff the peer's mode, which comes from the wire, is this node's. The error names both.
Status check_same_mode(std::uint8_t of_peer, EncryptionMode own);

}  // namespace riffle
