// The 128-byte blob that NCCL's bootstrap carries from a listener to its peers.
//
// It names the addresses to connect to and carries a fresh secret: a process that knows it was told
// by NCCL's bootstrap and may connect (transport/handshake/handshake.h). The last 8 bytes are
// scratch of the receiving side: NCCL passes the same blob to every call of `connect`, and the
// state lives there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

inline constexpr std::size_t kHandleBytes = 128;
inline constexpr std::size_t kSecretBytes = 16;
using Secret = std::array<std::uint8_t, kSecretBytes>;

struct Handle {
  std::array<std::uint8_t, kHandleBytes> bytes{};
};
static_assert(sizeof(Handle) == kHandleBytes);

struct Endpoint {
  std::array<std::uint8_t, 16> address{};  // IPv4 in the first four bytes
  std::uint16_t port = 0;
  bool is_ipv6 = false;
};

struct HandleContent {
  std::uint64_t communicator = 0;    // nonce drawn by the listener (handshake/process_mark.h)
  std::uint64_t comm_id = 0;         // NCCL's communicator hash, 0 = unknown
  std::uint32_t plugin_version = 0;  // kPluginVersion of the listener
  Secret secret{};
  bool is_over_library = false;     // the listener's frames go over another library (nccl_net)
  std::uint8_t encryption = 0;      // EncryptionMode of the listener (encryption.h)
  int threads = 1;                  // that its node has for one mesh: 1 to 16
  std::vector<Endpoint> endpoints;  // at least one, as many as there is room for
};

// Room for 12 IPv4 endpoints; one of IPv6 takes that of three.
inline constexpr std::size_t kHandleMaxEndpoints = 12;
bool has_room(const std::vector<Endpoint>& endpoints, const Endpoint& next);

// The threads that a mesh of these nodes has: as many as each of them has for it.
int common_threads(const std::vector<HandleContent>& handles);

Handle encode(const HandleContent& content);
// Refuses a foreign or mangled blob, and one of another plugin version (naming both versions).
Result<HandleContent> decode(const Handle& handle);

std::string version_text(std::uint32_t version);  // of kPluginVersion's form: "0.1.0"

}  // namespace riffle
