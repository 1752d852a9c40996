#include "plugin/transport/base/handle.h"

#include <algorithm>
#include <cstring>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/wire.h"
#include "plugin/version.h"

namespace riffle {
namespace {

constexpr std::uint32_t kHandleMagic = 0x484c4652;  // "RFLH"
constexpr std::size_t kPortBytes = 2;

enum : std::size_t {
  kHandleMagicAt = 0,
  kHandleVersionAt = 4,
  kHandleCommunicatorAt = 8,
  kHandleCommIdAt = 16,
  kHandleSecretAt = 24,
  kHandleCountAt = 40,
  kHandleIpv6MaskAt = 41,  // two bytes
  kHandleEndpointsAt = 43,
  kHandleCrcAt = kHandleEndpointsAt + kHandleMaxEndpoints * (4 + kPortBytes),  // 115
  kEnd = kHandleCrcAt + 4,
};
static_assert(kEnd <= kHandleBytes - 8, "the last 8 bytes are scratch of the connecting side");

std::size_t address_bytes(const Endpoint& e) { return e.is_ipv6 ? 16 : 4; }

std::size_t end_of(const std::vector<Endpoint>& endpoints) {
  std::size_t at = kHandleEndpointsAt;
  for (const Endpoint& e : endpoints) at += address_bytes(e) + kPortBytes;
  return at;
}

}  // namespace

bool has_room(const std::vector<Endpoint>& endpoints, const Endpoint& next) {
  return end_of(endpoints) + address_bytes(next) + kPortBytes <= kHandleCrcAt;
}

std::string version_text(std::uint32_t version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 255) + "." +
         std::to_string(version & 255);
}

Handle encode(const HandleContent& content) {
  RIFFLE_CHECK(!content.endpoints.empty() && end_of(content.endpoints) <= kHandleCrcAt,
               "a handle names at least one endpoint, and those that fit");
  Handle handle;
  std::uint8_t* b = handle.bytes.data();
  put(b + kHandleMagicAt, kHandleMagic);
  put(b + kHandleVersionAt, content.plugin_version);
  put(b + kHandleCommunicatorAt, content.communicator);
  put(b + kHandleCommIdAt, content.comm_id);
  std::copy(content.secret.begin(), content.secret.end(), b + kHandleSecretAt);
  b[kHandleCountAt] = static_cast<std::uint8_t>(content.endpoints.size());
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
  put(b + kHandleCrcAt, crc32c(b, kHandleCrcAt));
  return handle;
}

Result<HandleContent> decode(const Handle& handle) {
  const std::uint8_t* b = handle.bytes.data();
  if (get<std::uint32_t>(b + kHandleMagicAt) != kHandleMagic) {
    return remote_error(
        "the peer's connection handle is not one of Riffle: every node must load the same plugin "
        "(check NCCL_NET_PLUGIN on all nodes)");
  }
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
  const std::size_t count = b[kHandleCountAt];
  content.communicator = get<std::uint64_t>(b + kHandleCommunicatorAt);
  content.comm_id = get<std::uint64_t>(b + kHandleCommIdAt);
  std::copy_n(b + kHandleSecretAt, kSecretBytes, content.secret.begin());
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
