// A chosen plan as people look at it: what every link carries, which one limits, the groups by
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/terminal/terminal.h"
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
  std::string limit_text() const;  // what limits, and why
  std::string headline() const;    // the same with the predicted time, in one line
};

std::string share_text(Share units);  // "12.5%"
std::string to_text(const PlanView& view, const Colours& colours);
std::string to_json(const PlanView& view);
// The predicted time and the bound, the network with what limits, every group of lane 1 by level.
std::string to_svg(const PlanView& view);

}  // namespace riffle::tools
