// RIFFLE_KEY_FILE: a secret that all nodes were given beforehand, by a way that is not NCCL's
// bootstrap. Its bytes may be anything (`head -c 32 /dev/urandom`), the same on every node.
#pragma once

#include <memory>
#include <string>

#include "plugin/transport/crypto/keys.h"
#include "plugin/transport/crypto/locked.h"
#include "topology/base/status.h"

namespace riffle {

inline constexpr std::size_t kLeastKeyFileBytes = 32;
inline constexpr std::size_t kMostKeyFileBytes = 4096;

// What the file came to. Immutable; any thread.
class PresharedKey {
 public:
  explicit PresharedKey(ByteView content);
  ByteView bytes() const { return *digest_; }

 private:
  Locked<Key> digest_;
};

// Whether a file may hold a key: a regular one of a sensible size that belongs to this user or to
// root and is open to its owner alone. The error names the file, what is wrong and what helps.
Status check_key_file(const std::string& path);

Result<std::shared_ptr<const PresharedKey>> read_key_file(const std::string& path);

}  // namespace riffle
