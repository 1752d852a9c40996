#include "plugin/transport/device/device_choice.h"

#include <algorithm>

#include "plugin/transport/device/nic_choice.h"

namespace riffle {
namespace {

constexpr int kSlowestSpeedMbps = 1'000;  // below about 960 NCCL's graph search gives up CollNet

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
  std::vector<const Nic*> counted;
  for (const NicAddress& a : addresses) {
    const Nic* const nic = find_nic(nics, a.interface);
    const std::vector<const Nic*> cards = hardware_of(nics, a.interface);
    // A NIC and a VLAN over it are one wire. A bond or VLAN is as fast as its hardware, if it does
    // not say itself.
    const bool is_counted = std::any_of(cards.begin(), cards.end(), [&](const Nic* card) {
      return std::find(counted.begin(), counted.end(), card) != counted.end();
    });
    if (!is_counted) device.speed_mbps += assumed_speed_mbps(nics, a.interface);
    counted.insert(counted.end(), cards.begin(), cards.end());
    // What a veth says is no speed; a bond adds up its members.
    device.knows_speed &= real_speed_mbps(nics, a.interface).has_value() ||
                          (nic != nullptr && nic->speed_mbps && !nic->bond_members.empty());
    for (const Nic* const card : cards) {
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

std::vector<Device> make_devices(const std::vector<NicAddress>& chosen,
                                 const std::vector<Nic>& nics, bool per_nic) {
  if (!per_nic) return {make_device("riffle0", chosen, nics)};
  std::vector<Device> devices;
  for (const NicAddress& a : chosen) devices.push_back(make_device(a.interface, {a}, nics));
  return devices;
}

}  // namespace riffle
