#include "topology/probe/live_fabric.h"

#include <algorithm>
#include <cmath>

#include "topology/base/printed.h"

namespace riffle::probe {
namespace {

constexpr double kSame = 1.06;          // rates closer than this become one
constexpr double kSlow = 0.7;           // of the fastest node: a slow one
constexpr std::size_t kNamedNodes = 6;  // in one line
constexpr int kDefaultMtu = 1500;
constexpr int kEthernetBytes = 14;  // as tc and NICs count: no preamble, no checksum
constexpr int kTcpIpBytes = 52;     // with timestamps

void even_out(std::vector<double*> rates) {
  std::sort(rates.begin(), rates.end(), [](double* a, double* b) { return *a < *b; });
  for (std::size_t begin = 0; begin < rates.size();) {
    std::size_t end = begin + 1;
    while (end < rates.size() && *rates[end] <= *rates[begin] * kSame) ++end;
    const double middle = *rates[begin + (end - begin) / 2];
    for (; begin < end; ++begin) *rates[begin] = middle;
  }
}

// The last digits of a few hundred kbit/s mean nothing.
std::int64_t rounded(double kbps) { return std::llround(kbps); }

std::string mbps(std::int64_t kbps) {
  const double value = static_cast<double>(kbps) / 1000;
  return printed("%.*f", value < 10 ? 1 : 0, value);
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamedNodes; ++i) {
    text += (i ? ", " : "") + names[i];
  }
  if (names.size() > kNamedNodes) {
    text += " and " + std::to_string(names.size() - kNamedNodes) + " more";
  }
  return text;
}

}  // namespace

double link_per_payload(int mtu) {
  if (mtu <= 2 * kTcpIpBytes) mtu = kDefaultMtu;
  return static_cast<double>(mtu + kEthernetBytes) / (mtu - kTcpIpBytes);
}

Result<Fabric> to_fabric(const Findings& findings, const std::vector<std::string>& names, int mtu) {
  const std::size_t n = names.size();
  NodeRates rates = findings.rates;
  Racks racks = findings.racks;
  RIFFLE_CHECK(rates.out.size() == n && rates.in.size() == n && racks.rack_of.size() == n,
               "findings belong to other nodes");
  std::vector<double*> ends, links;
  for (std::size_t i = 0; i < n; ++i) {
    if (rates.out[i].kbps <= 0 || rates.in[i].kbps <= 0) {
      return remote_error("nothing arrived " +
                          std::string(rates.out[i].kbps <= 0 ? "from " : "at ") + names[i]);
    }
    ends.push_back(&rates.out[i].kbps);
    ends.push_back(&rates.in[i].kbps);
  }
  for (Uplink& u : racks.uplinks) {
    if (u.up_kbps > 0) links.push_back(&u.up_kbps);
    if (u.down_kbps > 0) links.push_back(&u.down_kbps);
  }
  even_out(ends);
  even_out(links);
  const double factor = link_per_payload(mtu);
  Fabric fabric;
  if (findings.latency_us > 0) fabric.latency_us = findings.latency_us;
  if (findings.rack_latency_us > 0) fabric.rack_latency_us = findings.rack_latency_us;
  for (std::size_t i = 0; i < n; ++i) {
    fabric.nodes.push_back({names[i], rounded(rates.out[i].kbps * factor),
                            rounded(rates.in[i].kbps * factor), racks.rack_of[i]});
  }
  for (int r = 0; r < racks.count; ++r) {
    RackLink rack;
    rack.name = racks.count == 1 ? "all" : "found" + std::to_string(r);
    if (racks.count > 1) {
      const Uplink& u = racks.uplinks[static_cast<std::size_t>(r)];
      rack.up_kbps = rounded(u.up_kbps * factor);
      rack.down_kbps = rounded(u.down_kbps * factor);
    }
    fabric.racks.push_back(rack);
  }
  if (const Status s = validate(fabric); !s) return s;
  return fabric;
}

std::string describe(const Findings& findings, const Fabric& fabric) {
  std::vector<std::int64_t> rates;
  for (const NodeLink& n : fabric.nodes) rates.push_back(std::min(n.out_kbps, n.in_kbps));
  std::vector<std::int64_t> sorted = rates;
  std::sort(sorted.begin(), sorted.end());
  double confidence = 1;
  for (const auto* direction : {&findings.rates.out, &findings.rates.in}) {
    for (const Rate& r : *direction) confidence = std::min(confidence, r.confidence);
  }
  std::string text = std::to_string(rates.size()) + " nodes of " + mbps(sorted.front());
  if (sorted.back() != sorted.front()) text += " to " + mbps(sorted.back());
  text += " Mbit/s (confidence " + percent(confidence) + ")";
  std::vector<std::string> slow;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (static_cast<double>(rates[i]) < kSlow * static_cast<double>(sorted.back())) {
      slow.push_back(fabric.nodes[i].name + " " + mbps(rates[i]));
    }
  }
  if (!slow.empty() && 2 * slow.size() <= rates.size()) text += "; slow: " + list(slow);
  if (fabric.racks.size() < 2) {
    if (findings.racks.held_back > 0.1) {
      text += "; " + percent(findings.racks.held_back) +
              " of the flows were held back, but by no racks that could be told";
    }
    return text + "; no racks";
  }
  text += "; " + std::to_string(fabric.racks.size()) + " racks:";
  for (std::size_t r = 0; r < fabric.racks.size(); ++r) {
    std::vector<std::string> members;
    for (const NodeLink& n : fabric.nodes) {
      if (n.rack == static_cast<int>(r)) members.push_back(n.name);
    }
    const RackLink& link = fabric.racks[r];
    text += (r ? "; " : " ") + list(members) + " behind an uplink of ";
    if (link.up_kbps == 0 && link.down_kbps == 0) {
      text += "no limit";
    } else {
      text += mbps(link.up_kbps == 0     ? link.down_kbps
                   : link.down_kbps == 0 ? link.up_kbps
                                         : std::min(link.up_kbps, link.down_kbps)) +
              " Mbit/s";
    }
    text += " (confidence " + percent(findings.racks.confidence[r]) + ")";
  }
  return text;
}

}  // namespace riffle::probe
