#include "plugin/transport/base/encryption.h"

namespace riffle {
namespace {

std::string mode_text(std::uint8_t mode) {
  switch (static_cast<EncryptionMode>(mode)) {
    case EncryptionMode::kOff:
      return "RIFFLE_ENCRYPT=0";
    case EncryptionMode::kOn:
      return "RIFFLE_ENCRYPT=1 without RIFFLE_KEY_FILE";
    case EncryptionMode::kOnWithKey:
      return "RIFFLE_ENCRYPT=1 with RIFFLE_KEY_FILE";
  }
  return "a mode of encryption that is not known here (" + std::to_string(mode) + ")";
}

}  // namespace

EncryptionMode mode_of(const EncryptionOptions& options) {
  if (!options.is_on) return EncryptionMode::kOff;
  return options.key == nullptr ? EncryptionMode::kOn : EncryptionMode::kOnWithKey;
}

Status check_same_mode(std::uint8_t of_peer, EncryptionMode own) {
  const auto mine = static_cast<std::uint8_t>(own);
  if (of_peer == mine) return Status::ok();
  return remote_error("it has " + mode_text(of_peer) + ", this node has " + mode_text(mine) +
                      ": all nodes must have the same");
}

}  // namespace riffle
