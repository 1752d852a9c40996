// What `riffle probe` found, as the first peer hands it to the coordinator and as people see it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/terminal/terminal.h"
#include "topology/base/status.h"
#include "topology/probe/rounds.h"

namespace riffle::tools {

struct ProbeFindings {
  struct Node {
    std::string name;
    double out_mbps = 0, in_mbps = 0;  // of the link
    double confidence = 0;             // 0..1
    int rack = 0;
  };
  struct Rack {
    std::string name;
    double up_mbps = 0, down_mbps = 0;  // 0: no limit found
    double confidence = 0;
  };
  std::vector<Node> nodes;
  std::vector<Rack> racks;
  std::vector<std::vector<double>> pair_mbps;  // [from][to], 0: not measured
  double latency_us = 0;
  double seconds = 0;
  double bytes = 0;
  int rounds = 0;
  std::vector<probe::Observed> measured;                    // what it was concluded from
  std::string toml;                                         // the fabric file
  std::string trouble;                                      // not empty: cut short, and why
  std::vector<std::pair<std::string, std::string>> absent;  // hosts that took no part, and why

  // What is slow, as sentences, the worst of each kind first: uplinks that carry less than their
  // rack can send, ends of nodes clearly slower than the one in the middle, and pairs that are
  // slower than both their ends though no uplink between them explains it.
  std::vector<std::string> slow() const;
};

std::string to_json(const ProbeFindings& findings);
Result<ProbeFindings> findings_from_json(const std::string& text);
std::string to_text(const ProbeFindings& findings, const Colours& colours);
std::string to_svg(const ProbeFindings& findings);  // heat map of the pairs

}  // namespace riffle::tools
