// A chosen plan as people look at it: what every link carries, which one limits, the groups by
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/terminal.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/planner.h"

namespace riffle::tools {

// A text names no more than these, then says how many there are.
inline constexpr std::size_t kShownGroups = 16;
inline constexpr std::size_t kShownMembers = 12;

struct LinkTime {
  std::string name;  // as in Candidate::limit: "sending of node a", "uplink of rack left"
  double rate_mbps = 0;
  double bytes = 0;  // that it carries, averaged over the lanes
  double time_us = 0;
};

struct PlanView {
  const Fabric* fabric;
  const PlanChoice* choice;
  std::uint64_t bytes;
  std::vector<LinkTime> links;  // the slowest first

  PlanView(const Fabric& the_fabric, const PlanChoice& the_choice, std::uint64_t the_bytes);
  std::string headline() const;  // what limits, in one line
};

std::string to_text(const PlanView& view, const Colours& colours);
std::string to_json(const PlanView& view);
// The network with the limit in red, and below it every group of lane 0, level by level.
std::string to_svg(const PlanView& view);

}  // namespace riffle::tools
