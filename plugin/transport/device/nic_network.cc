// Apart from devices(), which reads the machine: who asks for a subnet needs no NICs.
#include <arpa/inet.h>

#include <array>
#include <string>

#include "plugin/transport/device/device.h"

namespace riffle {

std::string network_of(const NicAddress& nic) {
  std::array<std::uint8_t, 16> bytes{};
  const int family = nic.is_ipv6 ? AF_INET6 : AF_INET, bits = nic.is_ipv6 ? 128 : 32;
  if (nic.prefix_bits <= 0 || nic.prefix_bits > bits - 2 ||
      ::inet_pton(family, nic.address.c_str(), bytes.data()) != 1) {
    return "";
  }
  for (int bit = nic.prefix_bits; bit < bits; ++bit) {
    bytes[static_cast<std::size_t>(bit) / 8] &= static_cast<std::uint8_t>(~(0x80 >> bit % 8));
  }
  char text[INET6_ADDRSTRLEN];
  ::inet_ntop(family, bytes.data(), text, sizeof text);
  return std::string(text) + "/" + std::to_string(nic.prefix_bits);
}

}  // namespace riffle
