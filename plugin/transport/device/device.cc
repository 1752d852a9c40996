#include "plugin/transport/device/device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <bit>

#include "plugin/config/log.h"
#include "plugin/transport/device/device_choice.h"
#include "plugin/transport/device/placement.h"

namespace riffle {
namespace {

int prefix_bits(const sockaddr* mask) {
  if (mask == nullptr) return 0;
  int bits = 0;
  if (mask->sa_family == AF_INET) {
    bits = std::popcount(reinterpret_cast<const sockaddr_in*>(mask)->sin_addr.s_addr);
  } else if (mask->sa_family == AF_INET6) {
    for (const auto byte : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr) {
      bits += std::popcount(static_cast<unsigned>(byte));
    }
  }
  return bits;
}

}  // namespace

std::vector<NicAddress> addresses_of_this_machine() {
  std::vector<NicAddress> out;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return out;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    NicAddress nic;
    nic.interface = i->ifa_name;
    nic.is_ipv6 = family == AF_INET6;
    char text[INET6_ADDRSTRLEN];
    if (nic.is_ipv6) {
      const auto* a = reinterpret_cast<const sockaddr_in6*>(i->ifa_addr);
      ::inet_ntop(family, &a->sin6_addr, text, sizeof text);
      nic.scope_id = a->sin6_scope_id;
    } else {
      const auto* a = reinterpret_cast<const sockaddr_in*>(i->ifa_addr);
      ::inet_ntop(family, &a->sin_addr, text, sizeof text);
    }
    nic.address = text;
    nic.prefix_bits = prefix_bits(i->ifa_netmask);
    out.push_back(std::move(nic));
  }
  ::freeifaddrs(list);
  return out;
}

namespace {

std::vector<Device> find_devices(const DeviceChoice& choice) {
  placement::job_mask();  // noted now, before NCCL narrows it
  const Result<std::vector<Nic>> nics = list_nics();
  std::vector<std::string> warnings;
  std::vector<Device> found = choose_devices(addresses_of_this_machine(),
                                             nics ? *nics : std::vector<Nic>{}, choice, &warnings);
  for (const std::string& w : warnings) log_warn(w);
  for (const Device& d : found) {
    std::string line = "device " + d.name + ", " + std::to_string(d.speed_mbps) + " Mbit/s:";
    for (const NicAddress& a : d.addresses) line += " " + a.interface + " (" + a.address + ")";
    log_info(line);
  }
  return found;
}

}  // namespace

const std::vector<Device>& devices(const DeviceChoice& choice) {
  static const auto* const all =
      new std::vector<Device>(find_devices(choice));  // outlives every thread
  return *all;
}

}  // namespace riffle
