#include "topology/host/pci.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

namespace riffle {
namespace {

bool is_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isxdigit(c) != 0; });
}

// "pci0000:3a": a host bridge, by domain and bus.
bool is_host_bridge(std::string_view text) {
  const std::size_t colon = text.find(':');
  return text.starts_with("pci") && colon != std::string_view::npos && colon >= 7 &&
         is_hex(text.substr(3, colon - 3)) && is_hex(text.substr(colon + 1));
}

}  // namespace

bool is_pci_address(std::string_view s) {
  const std::size_t colon = s.find(':');
  if (colon == std::string_view::npos || colon < 4 || s.size() != colon + 8) return false;
  return s[colon + 3] == ':' && s[colon + 6] == '.' && is_hex(s.substr(0, colon)) &&
         is_hex(s.substr(colon + 1, 2)) && is_hex(s.substr(colon + 4, 2)) &&
         is_hex(s.substr(colon + 7));
}

PciPath pci_path_of(std::string_view sysfs_path) {
  PciPath path;
  while (!sysfs_path.empty()) {
    const std::size_t slash = sysfs_path.find('/');
    const std::string_view part = sysfs_path.substr(0, slash);
    if (path.empty() ? is_host_bridge(part) : is_pci_address(part)) path.emplace_back(part);
    if (slash == std::string_view::npos) break;
    sysfs_path.remove_prefix(slash + 1);
  }
  if (path.size() < 2) return {};
  return path;
}

std::string hex(int value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%0*x", digits, static_cast<unsigned>(value));
  return text;
}

std::optional<PciLink> pci_link_of_rate(double gbytes_per_s) {
  // GB/s per lane: 8b/10b coding up to generation 2, 128b/130b to 5, flits of 242/256 in 6.
  constexpr struct {
    double gtps, gbytes_per_s;
  } kGenerations[] = {{2.5, 0.25},
                      {5.0, 0.5},
                      {8.0, 8.0 / 8 * 128 / 130},
                      {16.0, 16.0 / 8 * 128 / 130},
                      {32.0, 32.0 / 8 * 128 / 130},
                      {64.0, 64.0 / 8 * 242 / 256}};
  for (const int lanes : {16, 8, 4, 2, 1}) {
    for (const auto& generation : kGenerations) {
      const double rate = lanes * generation.gbytes_per_s;
      if (std::abs(gbytes_per_s - rate) < 0.01 * rate) return PciLink{generation.gtps, lanes};
    }
  }
  return {};
}

Distance distance(const Place& a, const Place& b) {
  const auto [end_a, end_b] =
      std::mismatch(a.path.begin(), a.path.end(), b.path.begin(), b.path.end());
  const auto shared = end_a - a.path.begin();
  if (shared >= 2) {
    // Below what both share, one bridge each way is the port of a common switch.
    const auto below_a = a.path.end() - end_a;
    const auto below_b = b.path.end() - end_b;
    return below_a <= 2 && below_b <= 2 ? Distance::kPix : Distance::kPxb;
  }
  if (shared == 1) return Distance::kPhb;
  if (!a.numa_node || !b.numa_node) return Distance::kUnknown;
  return *a.numa_node == *b.numa_node ? Distance::kNode : Distance::kSys;
}

std::string_view to_text(Distance distance) {
  switch (distance) {
    case Distance::kPix:
      return "PIX";
    case Distance::kPxb:
      return "PXB";
    case Distance::kPhb:
      return "PHB";
    case Distance::kNode:
      return "NODE";
    case Distance::kSys:
      return "SYS";
    case Distance::kUnknown:
      break;
  }
  return "?";
}

std::vector<std::string> switches_above(const PciPath& path) {
  // NCCL climbs two bridges at a time (a switch's downstream and upstream port) and stops at the
  // host bridge, which is path[0].
  std::vector<std::string> upstream_ports;
  for (std::size_t at = path.size() - 1; path.size() > 1 && at >= 3; at -= 2) {
    upstream_ports.push_back(path[at - 2]);
  }
  std::reverse(upstream_ports.begin(), upstream_ports.end());
  return upstream_ports;
}

}  // namespace riffle
