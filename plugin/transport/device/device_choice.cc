#include "plugin/transport/device/device_choice.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace riffle {
namespace {

constexpr int kUnknownSpeedMbps = 10'000;  // as NCCL assumes for sockets
constexpr int kSlowestSpeedMbps = 1'000;   // below about 960 NCCL's graph search gives up CollNet

bool is_link_local(const NicAddress& a) {
  if (!a.is_ipv6 || a.address.size() < 4) return false;
  const std::string head = a.address.substr(0, 3);  // fe80::/10: fe8 fe9 fea feb
  return head == "fe8" || head == "fe9" || head == "fea" || head == "feb";
}

// The best address of each interface, in the order of the interfaces.
std::vector<NicAddress> one_per_interface(const std::vector<NicAddress>& all,
                                          const std::string& family) {
  const auto rank = [&](const NicAddress& a) {
    const bool is_preferred = a.is_ipv6 == (family == "ipv6");
    return (is_link_local(a) ? 2 : 0) + (is_preferred ? 0 : 1);
  };
  std::vector<NicAddress> best;
  for (const NicAddress& a : all) {
    const auto it = std::find_if(best.begin(), best.end(),
                                 [&](const NicAddress& b) { return b.interface == a.interface; });
    if (it == best.end()) {
      best.push_back(a);
    } else if (rank(a) < rank(*it)) {
      *it = a;
    }
  }
  // Link-local addresses only where there is nothing else: peers need to share the link.
  if (std::any_of(best.begin(), best.end(), [](const auto& a) { return !is_link_local(a); })) {
    std::erase_if(best, is_link_local);
  }
  return best;
}

std::vector<NicAddress> matching(const std::vector<NicAddress>& all, const std::string& rule) {
  const InterfaceFilter filter(rule);
  std::vector<NicAddress> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](const NicAddress& a) { return filter.accepts(a.interface); });
  return out;
}

std::string names_of(const std::vector<NicAddress>& addresses) {
  std::string text;
  std::vector<std::string> seen;
  for (const NicAddress& a : addresses) {
    if (std::find(seen.begin(), seen.end(), a.interface) != seen.end()) continue;
    seen.push_back(a.interface);
    text += (text.empty() ? "" : ", ") + a.interface;
  }
  return text.empty() ? "none" : text;
}

// Interfaces without a carrier would only be tried in vain.
std::vector<NicAddress> with_carrier(const std::vector<NicAddress>& all,
                                     const std::vector<Nic>& nics) {
  std::vector<NicAddress> out;
  for (const NicAddress& a : all) {
    const Nic* const nic = find_nic(nics, a.interface);
    if (nic == nullptr || nic->is_running || nic->is_loopback) out.push_back(a);
  }
  return out;
}

std::vector<NicAddress> choose_addresses(const std::vector<NicAddress>& all,
                                         const DeviceChoice& choice,
                                         std::vector<std::string>* warnings) {
  if (!choice.rule.empty()) {
    std::vector<NicAddress> asked = matching(all, choice.rule);
    if (!asked.empty()) return asked;
    warnings->push_back(choice.rule_source + "='" + choice.rule +
                        "' matches no usable interface (there are: " + names_of(all) +
                        "); choosing as if it were not set");
  }
  std::vector<NicAddress> usual = matching(all, "^docker,lo,virbr");
  if (!usual.empty()) return usual;
  for (const char* last_resort : {"docker", "lo", "virbr"}) {
    std::vector<NicAddress> rest = matching(all, last_resort);
    if (rest.empty()) continue;
    warnings->push_back("no network interface but " + names_of(all) + " is usable: taking " +
                        names_of(rest) + ", which other machines cannot reach");
    return rest;
  }
  warnings->push_back("this machine has no usable network interface at all: taking 127.0.0.1");
  return {{.interface = "lo", .address = "127.0.0.1"}};
}

// FNV-1a: the same NIC has the same number in every process.
std::uint64_t stable_hash(const std::string& text) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Device make_device(const std::string& name, const std::vector<NicAddress>& addresses,
                   const std::vector<Nic>& nics) {
  Device device;
  device.name = name;
  device.addresses = addresses;
  device.speed_mbps = 0;
  device.knows_speed = true;
  std::string identity;
  int fastest_mbps = -1;  // NCCL gets to see one place: that of the fastest card
  for (const NicAddress& a : addresses) {
    const Nic* const nic = find_nic(nics, a.interface);
    // A bond or VLAN is where its hardware is, and as fast, if it does not say itself.
    const std::optional<int> real = real_speed_mbps(nics, a.interface);
    const std::optional<int> own = nic != nullptr ? nic->speed_mbps : std::nullopt;
    device.speed_mbps += real.value_or(own.value_or(kUnknownSpeedMbps));
    // What a veth says is no speed; a bond adds up its members.
    device.knows_speed &= real.has_value() || (own && !nic->bond_members.empty());
    for (const Nic* const card : hardware_of(nics, a.interface)) {
      const int speed = card->speed_mbps.value_or(0);
      if (card->pci_path.empty() || speed <= fastest_mbps) continue;
      fastest_mbps = speed;
      device.pci_path = card->pci_path;
    }
    identity += nic != nullptr ? nic->mac : a.address;
  }
  device.speed_mbps = std::max(device.speed_mbps, kSlowestSpeedMbps);
  device.guid = stable_hash(identity);
  return device;
}

}  // namespace

InterfaceFilter::InterfaceFilter(const std::string& rule) {
  std::size_t at = 0;
  if (at < rule.size() && rule[at] == '^') {
    excludes_ = true;
    ++at;
  }
  if (at < rule.size() && rule[at] == '=') {
    is_exact_ = true;
    ++at;
  }
  while (at < rule.size()) {
    const std::size_t end = std::min(rule.find(',', at), rule.size());
    std::string word = rule.substr(at, end - at);
    word = word.substr(0, word.find(':'));  // NCCL allows "name:port"; the port says nothing here
    if (!word.empty()) words_.push_back(std::move(word));
    at = end + 1;
  }
}

bool InterfaceFilter::accepts(const std::string& interface) const {
  if (words_.empty()) return true;
  const bool matches = std::any_of(words_.begin(), words_.end(), [&](const std::string& word) {
    return is_exact_ ? interface == word : interface.starts_with(word);
  });
  return matches != excludes_;
}

std::vector<Device> choose_devices(const std::vector<NicAddress>& addresses,
                                   const std::vector<Nic>& nics, const DeviceChoice& choice,
                                   std::vector<std::string>* warnings) {
  const std::vector<NicAddress> chosen = one_per_interface(
      choose_addresses(with_carrier(addresses, nics), choice, warnings), choice.family);
  std::vector<Device> devices;
  if (choice.per_nic) {
    for (const NicAddress& a : chosen) devices.push_back(make_device(a.interface, {a}, nics));
  } else {
    devices.push_back(make_device("riffle0", chosen, nics));
  }
  return devices;
}

}  // namespace riffle
