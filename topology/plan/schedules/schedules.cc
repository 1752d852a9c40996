#include "topology/plan/schedules/schedules.h"

#include "topology/plan/limits.h"

namespace riffle {
namespace {

std::string place(std::size_t group) { return "partition: group " + std::to_string(group); }

Status fault(std::size_t group, const std::string& what) {
  return invalid_argument(place(group) + ": " + what);
}

}  // namespace

Status validate_partition(const GroupPlan& plan) {
  if (plan.nodes < 2 || plan.nodes > kMaxNodes) {
    return invalid_argument("partition: " + std::to_string(plan.nodes) + " nodes, accepted 2.." +
                            std::to_string(kMaxNodes));
  }
  if (plan.levels.size() != 1) {
    return invalid_argument("partition: " + std::to_string(plan.levels.size()) +
                            " levels, accepted 1");
  }
  std::vector<bool> placed(static_cast<std::size_t>(plan.nodes), false);
  const auto& groups = plan.levels.front().groups;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const std::size_t members = group.members.size();
    if (group.pattern != Pattern::kDirect) return fault(g, "only direct groups are accepted");
    if (members < 2) return fault(g, "fewer than two members");
    if (group.cuts.size() != members + 1) {
      return fault(g, std::to_string(members) + " members need " + std::to_string(members + 1) +
                          " cuts, not " + std::to_string(group.cuts.size()));
    }
    for (std::size_t j = 0; j < members; ++j) {
      if (group.cuts[j] > group.cuts[j + 1]) return fault(g, "cuts are not in order");
    }
    if (group.begin() != 0 || group.end() != kShareUnits) {
      return fault(g, "it spans [" + std::to_string(group.begin()) + ", " +
                          std::to_string(group.end()) + ") instead of the whole buffer");
    }
    for (int m : group.members) {
      if (m < 0 || m >= plan.nodes) {
        return fault(
            g, "member " + std::to_string(m) + " is not in 0.." + std::to_string(plan.nodes - 1));
      }
      if (placed[static_cast<std::size_t>(m)]) {
        return fault(g, "node " + std::to_string(m) + " stands in two groups");
      }
      placed[static_cast<std::size_t>(m)] = true;
    }
  }
  return Status::ok();
}

Status validate(const ScheduleTable& table) {
  if (table.steps < 1 || static_cast<std::size_t>(table.steps) > kMaxScheduleSteps) {
    return invalid_argument("schedule: " + std::to_string(table.steps) + " steps, accepted 1.." +
                            std::to_string(kMaxScheduleSteps));
  }
  if (table.lanes < 1 || static_cast<std::size_t>(table.lanes) > kMaxPlanLanes) {
    return invalid_argument("schedule: " + std::to_string(table.lanes) + " lanes, accepted 1.." +
                            std::to_string(kMaxPlanLanes));
  }
  if (table.name.size() > kMaxPlanName) {
    return invalid_argument("schedule: a name of " + std::to_string(table.name.size()) +
                            " bytes, accepted at most " + std::to_string(kMaxPlanName));
  }
  if (table.chunk_bytes != 0 && table.chunk_bytes < kLeastPlanChunk) {
    return invalid_argument("schedule: chunks of " + std::to_string(table.chunk_bytes) +
                            " bytes, accepted at least " + std::to_string(kLeastPlanChunk));
  }
  const std::size_t entries =
      static_cast<std::size_t>(table.steps) * static_cast<std::size_t>(table.lanes);
  if (table.table.size() != entries) {
    return invalid_argument("schedule: " + std::to_string(table.table.size()) +
                            " entries instead of " + std::to_string(entries));
  }
  if (table.partitions.size() > entries) {
    return invalid_argument("schedule: more partitions than entries");
  }
  for (std::uint32_t index : table.table) {
    if (index >= table.partitions.size()) {
      return invalid_argument("schedule: entry " + std::to_string(index) + " is not in 0.." +
                              std::to_string(table.partitions.size()) + " - 1");
    }
  }
  for (std::size_t p = 0; p < table.partitions.size(); ++p) {
    const GroupPlan& plan = table.partitions[p];
    if (plan.nodes != table.nodes) {
      return invalid_argument("schedule: partition " + std::to_string(p) + " has " +
                              std::to_string(plan.nodes) + " nodes, the schedule " +
                              std::to_string(table.nodes));
    }
    if (Status s = validate_partition(plan); !s) {
      return invalid_argument("schedule: partition " + std::to_string(p) + ": " + s.message());
    }
  }
  return Status::ok();
}

}  // namespace riffle
