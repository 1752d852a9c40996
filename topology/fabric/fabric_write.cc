#include <cstdio>

#include "topology/fabric/fabric_file.h"

namespace riffle {
namespace {

// kbit/s as Mbit/s without loss.
std::string mbps(std::int64_t kbps) {
  std::string text = std::to_string(kbps / 1000);
  if (kbps % 1000 == 0) return text;
  char fraction[8];
  std::snprintf(fraction, sizeof(fraction), ".%03d", static_cast<int>(kbps % 1000));
  return text + fraction;
}

// A TOML basic string.
std::string quoted(const std::string& s) {
  std::string text = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
      text += escape;
    } else {
      text += c;
    }
  }
  return text + "\"";
}

std::string rates(const char* both, const char* out, const char* in, std::int64_t out_kbps,
                  std::int64_t in_kbps) {
  if (out_kbps == in_kbps) return std::string(both) + " = " + mbps(out_kbps) + "\n";
  return std::string(out) + " = " + mbps(out_kbps) + "\n" + in + " = " + mbps(in_kbps) + "\n";
}

}  // namespace

std::string to_toml(const Fabric& fabric) {
  std::string text = "latency_us = " + std::to_string(fabric.latency_us) + "\n";
  if (fabric.rack_latency_us) {
    text += "rack_latency_us = " + std::to_string(*fabric.rack_latency_us) + "\n";
  }
  for (const RackLink& rack : fabric.racks) {
    text += "\n[[rack]]\nname = " + quoted(rack.name) + "\n" +
            rates("uplink_mbps", "up_mbps", "down_mbps", rack.up_kbps, rack.down_kbps);
  }
  for (const NodeLink& node : fabric.nodes) {
    text += "\n[[node]]\nname = " + quoted(node.name) + "\n" +
            rates("rate_mbps", "out_mbps", "in_mbps", node.out_kbps, node.in_kbps) +
            "rack = " + quoted(fabric.racks[node.rack].name) + "\n";
  }
  return text;
}

}  // namespace riffle
