#include "plugin/transport/base/handle.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/wire.h"
#include "plugin/version.h"

namespace riffle {
namespace {

constexpr std::uint32_t kHandleMagic = 0x484c4652;  // "RFLH"
constexpr std::size_t kPortBytes = 2;
constexpr std::uint8_t kOverLibraryBit = 0x80;  // beside the number of endpoints
constexpr int kThreadsShift = 4;                // beside the encryption: one less than there are
constexpr std::uint8_t kEncryptionBits = (1 << kThreadsShift) - 1;

enum : std::size_t {
  kHandleMagicAt = 0,
  kHandleVersionAt = 4,
  kHandleCommunicatorAt = 8,
  kHandleCommIdAt = 16,
  kHandleSecretAt = 24,
  kHandleCountAt = 40,
  kHandleIpv6MaskAt = 41,  // two bytes
  kHandleEndpointsAt = 43,
  kHandleEncryptionAt = kHandleEndpointsAt + kHandleMaxEndpoints * (4 + kPortBytes),  // 115
  kHandleCrcAt,
  kEnd = kHandleCrcAt + 4,
};
static_assert(kEnd <= kHandleBytes - 8, "the last 8 bytes are scratch of the connecting side");

std::size_t address_bytes(const Endpoint& e) { return e.is_ipv6 ? 16 : 4; }

std::size_t end_of(const std::vector<Endpoint>& endpoints) {
  std::size_t at = kHandleEndpointsAt;
  for (const Endpoint& e : endpoints) at += address_bytes(e) + kPortBytes;
  return at;
}

// The handles of NCCL's own transports, sockets and InfiniBand, begin with the socket address of
// the listener. Empty: this one does not.
std::string address_in_nccls_handle(const Handle& handle) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, handle.bytes.data(), sizeof v4);
  std::memcpy(&v6, handle.bytes.data(), sizeof v6);
  if (v4.sin_family == AF_INET && v4.sin_port != 0) {
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
  } else if (v6.sin6_family == AF_INET6 && v6.sin6_port != 0) {
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  }
  return text.data();
}

Status not_ours(const Handle& handle) {
  const std::string address = address_in_nccls_handle(handle);
  if (address.empty()) {
    return remote_error(
        "the peer's connection handle is not one of Riffle: every node must load the same plugin "
        "(check NCCL_NET_PLUGIN on all nodes)");
  }
  return remote_error(
      "the peer at " + address +
      " uses NCCL's own transport and not Riffle: its NCCL did not load "
      "Riffle (check NCCL_NET_PLUGIN there), or Riffle left the network to NCCL there, for an RDMA "
      "port (`riffle doctor` on every node says so; RIFFLE_NET=tcp on all nodes: Riffle "
      "everywhere)");
}

}  // namespace

bool has_room(const std::vector<Endpoint>& endpoints, const Endpoint& next) {
  return end_of(endpoints) + address_bytes(next) + kPortBytes <= kHandleEncryptionAt;
}

int common_threads(const std::vector<HandleContent>& handles) {
  int least = handles.front().threads;
  for (const HandleContent& handle : handles) least = std::min(least, handle.threads);
  return least;
}

std::string version_text(std::uint32_t version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 255) + "." +
         std::to_string(version & 255);
}

Handle encode(const HandleContent& content) {
  RIFFLE_CHECK(!content.endpoints.empty() && end_of(content.endpoints) <= kHandleEncryptionAt,
               "a handle names at least one endpoint, and those that fit");
  Handle handle;
  std::uint8_t* b = handle.bytes.data();
  put(b + kHandleMagicAt, kHandleMagic);
  put(b + kHandleVersionAt, content.plugin_version);
  put(b + kHandleCommunicatorAt, content.communicator);
  put(b + kHandleCommIdAt, content.comm_id);
  std::copy(content.secret.begin(), content.secret.end(), b + kHandleSecretAt);
  b[kHandleCountAt] = static_cast<std::uint8_t>(content.endpoints.size());
  if (content.is_over_library) b[kHandleCountAt] |= kOverLibraryBit;
  std::uint8_t* at = b + kHandleEndpointsAt;
  std::uint16_t ipv6_mask = 0;
  for (std::size_t i = 0; i < content.endpoints.size(); ++i) {
    const Endpoint& e = content.endpoints[i];
    at = std::copy_n(e.address.begin(), address_bytes(e), at);
    put(at, e.port);
    at += kPortBytes;
    if (e.is_ipv6) ipv6_mask = static_cast<std::uint16_t>(ipv6_mask | 1u << i);
  }
  put(b + kHandleIpv6MaskAt, ipv6_mask);
  b[kHandleEncryptionAt] =
      static_cast<std::uint8_t>(content.encryption | (content.threads - 1) << kThreadsShift);
  put(b + kHandleCrcAt, crc32c(b, kHandleCrcAt));
  return handle;
}

Result<HandleContent> decode(const Handle& handle) {
  const std::uint8_t* b = handle.bytes.data();
  if (get<std::uint32_t>(b + kHandleMagicAt) != kHandleMagic) return not_ours(handle);
  // The version before the checksum: only these first 8 bytes are promised to stay where they are.
  HandleContent content;
  content.plugin_version = get<std::uint32_t>(b + kHandleVersionAt);
  if (content.plugin_version != kPluginVersion) {
    return remote_error("the peer runs Riffle " + version_text(content.plugin_version) +
                        ", this node runs " + version_text(kPluginVersion) +
                        ": install the same version on all nodes");
  }
  if (get<std::uint32_t>(b + kHandleCrcAt) != crc32c(b, kHandleCrcAt)) {
    return remote_error("the peer's connection handle arrived damaged (CRC32C does not match)");
  }
  const std::size_t count = b[kHandleCountAt] & ~kOverLibraryBit;
  content.is_over_library = (b[kHandleCountAt] & kOverLibraryBit) != 0;
  content.communicator = get<std::uint64_t>(b + kHandleCommunicatorAt);
  content.comm_id = get<std::uint64_t>(b + kHandleCommIdAt);
  std::copy_n(b + kHandleSecretAt, kSecretBytes, content.secret.begin());
  content.encryption = b[kHandleEncryptionAt] & kEncryptionBits;
  content.threads = 1 + (b[kHandleEncryptionAt] >> kThreadsShift);
  const std::uint8_t* at = b + kHandleEndpointsAt;
  for (std::size_t i = 0; i < count; ++i) {
    Endpoint e;
    e.is_ipv6 = (get<std::uint16_t>(b + kHandleIpv6MaskAt) >> i & 1) != 0;
    if (!has_room(content.endpoints, e)) break;
    std::copy_n(at, address_bytes(e), e.address.begin());
    at += address_bytes(e);
    e.port = get<std::uint16_t>(at);
    at += kPortBytes;
    content.endpoints.push_back(e);
  }
  if (content.endpoints.empty() || content.endpoints.size() != count) {
    return remote_error("the peer's connection handle names " + std::to_string(count) +
                        " endpoints: 1 to 12 of IPv4 are possible, or a third of that of IPv6");
  }
  return content;
}

}  // namespace riffle
