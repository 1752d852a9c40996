#include "topology/host/nics.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace riffle {
namespace {

namespace fs = std::filesystem;

// The first line of a sysfs attribute; empty if it is absent or the kernel refuses (as it does for
// the speed and carrier of an interface that is down).
std::string attribute(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<long> number(const std::string& text, int base = 10) {
  const char* first = text.data();
  const char* last = first + text.size();
  if (base == 16 && text.starts_with("0x")) first += 2;
  long value = 0;
  const auto [end, error] = std::from_chars(first, last, value, base);
  if (error != std::errc() || end != last || first == last) return {};
  return value;
}

std::optional<int> non_negative(const std::string& text) {
  const auto value = number(text);
  if (!value || *value < 0 || *value > 1'000'000'000) return {};  // the kernel says -1 for unknown
  return static_cast<int>(*value);
}

// "0000:3b:00.1": domain, bus, device, function.
bool is_pci_function(const std::string& s) {
  const auto hex = [&](std::size_t from, std::size_t to) {
    return std::all_of(s.begin() + static_cast<std::ptrdiff_t>(from),
                       s.begin() + static_cast<std::ptrdiff_t>(to),
                       [](unsigned char c) { return std::isxdigit(c) != 0; });
  };
  const std::size_t colon = s.find(':');
  if (colon == std::string::npos || colon < 4 || s.size() != colon + 8) return false;
  return s[colon + 3] == ':' && s[colon + 6] == '.' && hex(0, colon) && hex(colon + 1, colon + 3) &&
         hex(colon + 4, colon + 6) && hex(colon + 7, colon + 8);
}

// A virtio or USB device hangs below its PCI function, so look upwards.
fs::path pci_function(fs::path device, const fs::path& sysfs) {
  for (; device.has_relative_path() && device != sysfs; device = device.parent_path()) {
    if (is_pci_function(device.filename().string())) return device;
  }
  return {};
}

void read_device(const fs::path& interface, const fs::path& sysfs, Nic& nic) {
  std::error_code error;
  const fs::path device = fs::canonical(interface / "device", error);
  nic.is_virtual = static_cast<bool>(error);
  if (nic.is_virtual) return;
  if (const fs::path driver = fs::read_symlink(device / "driver", error); !error) {
    nic.driver = driver.filename().string();
  }
  const fs::path pci = pci_function(device, sysfs);
  nic.pci_path = pci.string();
  nic.numa_node = non_negative(attribute((pci.empty() ? device : pci) / "numa_node"));
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

Nic read_nic(const fs::path& interface, const fs::path& sysfs) {
  constexpr long kUp = 0x1;        // IFF_UP
  constexpr long kLoopback = 0x8;  // IFF_LOOPBACK
  Nic nic;
  nic.name = interface.filename().string();
  const long flags = number(attribute(interface / "flags"), 16).value_or(0);
  nic.is_up = (flags & kUp) != 0;
  nic.is_loopback = (flags & kLoopback) != 0;
  nic.is_running = nic.is_up && attribute(interface / "carrier") == "1";
  nic.speed_mbps = non_negative(attribute(interface / "speed"));
  if (nic.speed_mbps == 0) nic.speed_mbps.reset();
  nic.mac = attribute(interface / "address");
  nic.mtu = non_negative(attribute(interface / "mtu")).value_or(0);
  read_device(interface, sysfs, nic);
  read_bond(interface, nic);
  return nic;
}

}  // namespace

Result<std::vector<Nic>> list_nics(const std::string& sysfs) {
  std::error_code error;
  const fs::path root = fs::canonical(sysfs, error);
  fs::directory_iterator entries;
  if (!error) entries = fs::directory_iterator(root / "class" / "net", error);
  if (error) {
    return system_error("network interfaces: " + sysfs + "/class/net: " + error.message() +
                        "; sysfs has to be mounted there");
  }
  std::vector<Nic> nics;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    // Plain files such as bonding_masters lie there too; what has no flags is gone again.
    if (!fs::exists(entries->path() / "flags", error)) continue;
    nics.push_back(read_nic(entries->path(), root));
  }
  std::sort(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) { return a.name < b.name; });
  return nics;
}

}  // namespace riffle
