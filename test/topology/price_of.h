// How much longer an all-reduce takes with the plan for what was found than with the one for the
// network as it is.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "topology/plan/planner.h"
#include "topology/probe/live_fabric.h"

namespace riffle {

inline double price_of(const Fabric& truth, const probe::Findings& found) {
  constexpr std::uint64_t kBytes = 32 << 20;
  std::vector<std::string> names;
  for (const NodeLink& n : truth.nodes) names.push_back(n.name);
  const Result<Fabric> live = probe::to_fabric(found, names, 1500);
  EXPECT_TRUE(live) << live.status().message();
  const auto told = plan(truth, kBytes, {}), ours = plan(*live, kBytes, {});
  EXPECT_TRUE(told && ours);
  return predict(truth, ours->plans, kBytes).time_us / told->time_us;
}

}  // namespace riffle
