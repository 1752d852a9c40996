#include "plugin/transport/device/device.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>

#include <array>
#include <bit>
#include <map>

#include "plugin/config/log.h"
#include "plugin/transport/device/device_choice.h"
#include "plugin/transport/device/nic_choice.h"
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

// "eth0:1" is a second address of eth0.
std::string interface_of(const std::string& label) { return label.substr(0, label.find(':')); }

NicAddress address_of(const ifaddrs& entry) {
  NicAddress nic;
  nic.interface = interface_of(entry.ifa_name);
  nic.is_ipv6 = entry.ifa_addr->sa_family == AF_INET6;
  char text[INET6_ADDRSTRLEN];
  if (nic.is_ipv6) {
    const auto* a = reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr);
    ::inet_ntop(AF_INET6, &a->sin6_addr, text, sizeof text);
    nic.scope_id = a->sin6_scope_id;
  } else {
    const auto* a = reinterpret_cast<const sockaddr_in*>(entry.ifa_addr);
    ::inet_ntop(AF_INET, &a->sin_addr, text, sizeof text);
  }
  nic.address = text;
  nic.prefix_bits = prefix_bits(entry.ifa_netmask);
  return nic;
}

// The beginning of what sysfs writes: of an InfiniBand address of 20 bytes only 8 fit.
std::string mac_of(const ifaddrs& entry) {
  const auto* link = reinterpret_cast<const sockaddr_ll*>(entry.ifa_addr);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(link->sll_halen, sizeof link->sll_addr); ++i) {
    if (i > 0) text += ':';
    text += kDigits[link->sll_addr[i] >> 4];
    text += kDigits[link->sll_addr[i] & 15];
  }
  return text;
}

}  // namespace

Interfaces interfaces_of_this_machine(const std::string& sysfs) {
  Interfaces here;
  std::map<std::string, std::string> macs;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return here;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || (i->ifa_flags & IFF_UP) == 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family == AF_PACKET) macs[i->ifa_name] = mac_of(*i);
    if (family == AF_INET || family == AF_INET6) here.addresses.push_back(address_of(*i));
  }
  ::freeifaddrs(list);
  Result<std::vector<Nic>> nics = list_nics(sysfs);
  if (nics) here.nics = std::move(*nics);
  for (const NicAddress& a : here.addresses) {
    const Nic* const nic = find_nic(here.nics, a.interface);
    if (nic != nullptr && nic->mac.starts_with(macs[a.interface])) continue;
    here.nics.clear();
    break;
  }
  return here;
}

namespace {

Result<std::vector<Device>> find_devices(const DeviceChoice& choice) {
  placement::job_mask();  // noted now, before NCCL narrows it
  Interfaces here = interfaces_of_this_machine();
  const Result<NicChoice> nics = choose_nics(here.addresses, here.nics, choice);
  if (!nics) return nics.status();
  for (const std::string& w : (*nics).warnings) log_warn(w);
  if (!(*nics).left_out.empty()) log_info("not used: {}", to_text((*nics).left_out));
  std::vector<Device> found = make_devices((*nics).chosen, here.nics, choice.per_nic);
  for (const Device& d : found) {
    std::string line = "device " + d.name + ", " + std::to_string(d.speed_mbps) + " Mbit/s:";
    for (const NicAddress& a : d.addresses) line += " " + a.interface + " (" + a.address + ")";
    log_info(line);
  }
  std::vector<std::string> used;
  for (const NicAddress& a : (*nics).chosen) used.push_back(a.interface);
  placement::begin(std::move(here.nics), std::move(used));
  return found;
}

}  // namespace

const Result<std::vector<Device>>& devices(const DeviceChoice& choice) {
  static const auto* const all =
      new Result<std::vector<Device>>(find_devices(choice));  // outlives every thread
  return *all;
}

}  // namespace riffle
