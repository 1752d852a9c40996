#include "topology/host/nics.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "topology/base/folder.h"
#include "topology/host/pci.h"
#include "topology/host/sysfs.h"

namespace riffle {
namespace {

namespace fs = std::filesystem;
using sysfs::attribute;
using sysfs::non_negative;
using sysfs::number;

// A virtio or USB device hangs below its PCI function, so look upwards.
fs::path pci_function(fs::path device, const fs::path& root) {
  for (; device.has_relative_path() && device != root; device = device.parent_path()) {
    if (is_pci_address(device.filename().string())) return device;
  }
  return {};
}

std::string first_entry(const fs::path& folder) {
  std::string first;
  (void)for_each_name(folder, [&](std::string_view name) {
    if (first.empty() || name < first) first = name;
  });
  return first;
}

void read_device(const fs::path& interface, const fs::path& root, Nic& nic) {
  std::error_code error;
  const fs::path device = fs::canonical(interface / "device", error);
  nic.is_virtual = static_cast<bool>(error);
  if (nic.is_virtual) return;
  if (const fs::path driver = fs::read_symlink(device / "driver", error); !error) {
    nic.driver = driver.filename().string();
  }
  nic.pci_path = pci_function(device, root).string();
  nic.rdma = first_entry(device / "infiniband");
}

// "lower_eth0" links lead from a bond, VLAN or bridge to what it runs over.
void read_lower(const fs::path& interface, Nic& nic) {
  constexpr std::string_view kPrefix = "lower_";
  (void)for_each_name(interface, [&](std::string_view name) {
    if (name.starts_with(kPrefix)) nic.lower.emplace_back(name.substr(kPrefix.size()));
  });
  std::sort(nic.lower.begin(), nic.lower.end());
}

void read_bond(const fs::path& interface, Nic& nic) {
  std::istringstream members(attribute(interface / "bonding" / "slaves"));
  for (std::string name; members >> name;) nic.bond_members.push_back(name);
  // Bridges have a `master` link to their ports too; only a bond keeps a bonding_slave folder
  // there.
  std::error_code error;
  if (!fs::exists(interface / "bonding_slave", error)) return;
  const fs::path master = fs::read_symlink(interface / "master", error);
  if (!error) nic.bond_master = master.filename().string();
}

std::string read_kind(const fs::path& interface) {
  constexpr std::string_view kKey = "DEVTYPE=";
  std::ifstream lines(interface / "uevent");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kKey)) return line.substr(kKey.size());
  }
  return "";
}

Nic read_nic(const fs::path& interface, const fs::path& root) {
  constexpr long kUp = 0x1;        // IFF_UP
  constexpr long kLoopback = 0x8;  // IFF_LOOPBACK
  Nic nic;
  nic.name = interface.filename().string();
  const long flags = number(attribute(interface / "flags"), 16).value_or(0);
  nic.is_up = (flags & kUp) != 0;
  nic.is_loopback = (flags & kLoopback) != 0;
  nic.is_running = nic.is_up && attribute(interface / "carrier") == "1";
  set_speed(attribute(interface / "speed"), nic);
  nic.mac = attribute(interface / "address");
  nic.mtu = non_negative(attribute(interface / "mtu")).value_or(0);
  nic.kind = read_kind(interface);
  read_device(interface, root, nic);
  read_bond(interface, nic);
  if (nic.is_virtual) read_lower(interface, nic);
  return nic;
}

void add_hardware(const std::vector<Nic>& nics, const std::string& name, int depth,
                  std::vector<const Nic*>& out) {
  constexpr int kDeepest = 8;  // a VLAN over a bridge over a bond is 3; a recorded file may loop
  const Nic* const nic = find_nic(nics, name);
  if (nic == nullptr || depth > kDeepest) return;
  if (!nic->is_virtual) {
    if (std::find(out.begin(), out.end(), nic) == out.end()) out.push_back(nic);
    return;
  }
  for (const std::string& below : nic->bond_members.empty() ? nic->lower : nic->bond_members) {
    add_hardware(nics, below, depth + 1, out);
  }
}

}  // namespace

const Nic* find_nic(const std::vector<Nic>& nics, const std::string& name) {
  const auto it =
      std::find_if(nics.begin(), nics.end(), [&](const Nic& n) { return n.name == name; });
  return it == nics.end() ? nullptr : &*it;
}

void set_speed(const std::string& text, Nic& nic) {
  nic.speed_mbps.reset();
  nic.odd_speed.clear();
  if (text.empty() || text == "-1" || text == "0") return;
  const auto value = non_negative(text);
  if (value && *value > 0 && *value <= kMaxNicSpeedMbps) {
    nic.speed_mbps = value;
  } else if (text != "4294967295") {  // -1 of old kernels
    nic.odd_speed = text.substr(0, 40);
  }
}

std::vector<const Nic*> hardware_of(const std::vector<Nic>& nics, const std::string& name) {
  std::vector<const Nic*> out;
  add_hardware(nics, name, 0, out);
  std::sort(out.begin(), out.end(), [](const Nic* a, const Nic* b) { return a->name < b->name; });
  return out;
}

std::optional<int> real_speed_mbps(const std::vector<Nic>& nics, const std::string& name) {
  const std::vector<const Nic*> hardware = hardware_of(nics, name);
  if (hardware.empty()) return {};
  if (const Nic* const nic = find_nic(nics, name); nic->speed_mbps) return nic->speed_mbps;
  int sum = 0;
  for (const Nic* const nic : hardware) {
    if (!nic->speed_mbps || sum > kMaxNicSpeedMbps) return {};
    sum += *nic->speed_mbps;
  }
  return sum;
}

Result<std::vector<Nic>> list_nics(const std::string& sysfs) {
  std::error_code error;
  const fs::path root = fs::canonical(sysfs, error);
  std::vector<fs::path> interfaces;
  if (!error) {
    const fs::path folder = root / "class" / "net";
    const int unread =
        for_each_name(folder, [&](std::string_view name) { interfaces.push_back(folder / name); });
    error.assign(unread, std::generic_category());
  }
  if (error) {
    return system_error("network interfaces: " + sysfs + "/class/net: " + error.message() +
                        "; sysfs has to be mounted there");
  }
  std::vector<Nic> nics;
  for (const fs::path& interface : interfaces) {
    // Plain files such as bonding_masters lie there too; what has no flags is gone again.
    if (!fs::exists(interface / "flags", error)) continue;
    nics.push_back(read_nic(interface, root));
  }
  std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
  return nics;
}

}  // namespace riffle
