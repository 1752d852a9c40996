#include "topology/plan/group_plan.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "topology/plan/limits.h"

namespace riffle {
namespace {

// What one node holds a partial sum of: disjoint, non-touching intervals in rising order.
class Holding {
 public:
  explicit Holding(Share end) : intervals_{{0, end}} {}

  // Removes [begin, end) if all of it is held.
  bool take(Share begin, Share end) {
    auto it = std::upper_bound(intervals_.begin(), intervals_.end(), begin,
                               [](Share u, const Interval& i) { return u < i.second; });
    if (it == intervals_.end() || it->first > begin || it->second < end) return false;
    const Interval left{it->first, begin};
    const Interval right{end, it->second};
    it = intervals_.erase(it);
    if (right.first < right.second) it = intervals_.insert(it, right);
    if (left.first < left.second) intervals_.insert(it, left);
    return true;
  }

  // Adds an interval that was taken before, so it overlaps nothing.
  void put(Share begin, Share end) {
    auto it = std::lower_bound(intervals_.begin(), intervals_.end(), Interval{begin, begin});
    const bool joins_left = it != intervals_.begin() && std::prev(it)->second == begin;
    const bool joins_right = it != intervals_.end() && it->first == end;
    if (joins_left && joins_right) {
      std::prev(it)->second = it->second;
      intervals_.erase(it);
    } else if (joins_left) {
      std::prev(it)->second = end;
    } else if (joins_right) {
      it->first = begin;
    } else {
      intervals_.insert(it, {begin, end});
    }
  }

  std::uint64_t units() const {
    std::uint64_t sum = 0;
    for (const Interval& i : intervals_) sum += i.second - i.first;
    return sum;
  }

 private:
  using Interval = std::pair<Share, Share>;
  std::vector<Interval> intervals_;
};

std::string place(std::size_t level, std::size_t group) {
  return "level " + std::to_string(level) + ", group " + std::to_string(group) + ": ";
}

// The shape of one group by itself; empty when sound.
std::string fault_of(const Group& group, int nodes) {
  if (find_exchange(group.pattern) == nullptr) {
    return "unknown pattern " + std::to_string(static_cast<int>(group.pattern));
  }
  if (group.members.size() < 2) return "fewer than two members";
  if (group.cuts.size() != group.members.size() + 1) {
    return std::to_string(group.members.size()) + " members need " +
           std::to_string(group.members.size() + 1) + " cuts, not " +
           std::to_string(group.cuts.size());
  }
  if (!std::is_sorted(group.cuts.begin(), group.cuts.end())) return "cuts are not in order";
  if (group.begin() == group.end()) return "the span is empty";
  if (group.end() > kShareUnits) return "the span ends behind the buffer";
  for (int m : group.members) {
    if (m < 0 || m >= nodes) {
      return "member " + std::to_string(m) + " is not in 0.." + std::to_string(nodes - 1);
    }
  }
  return {};
}

}  // namespace

std::uint64_t element_of(Share u, std::uint64_t count, std::uint64_t grain) {
  RIFFLE_CHECK(u <= kShareUnits, "a unit behind the end of the buffer");
  RIFFLE_CHECK(grain > 0 && (grain & (grain - 1)) == 0, "the grain must be a power of two");
  if (u == kShareUnits) return count;
  __extension__ using Wide = unsigned __int128;
  const auto element = static_cast<std::uint64_t>(static_cast<Wide>(u) * count / kShareUnits);
  return element & ~(grain - 1);
}

// A group replaces its members' partial sums of a unit by one sum of them all. So, as long as every
// member really holds the whole span, each contribution stays in exactly one partial sum, and the
// plan is complete when the number of units held, over all nodes, has come down to one per unit. No
// set of contributions has to be followed; the cost is that of one sorted list operation per
// member.
Status validate(const GroupPlan& plan) {
  if (plan.nodes < 1 || plan.nodes > kMaxNodes) {
    return invalid_argument("plan: " + std::to_string(plan.nodes) + " nodes, accepted 1.." +
                            std::to_string(kMaxNodes));
  }
  if (plan.levels.size() > kMaxPlanLevels) {
    return invalid_argument("plan: " + std::to_string(plan.levels.size()) +
                            " levels, accepted at most " + std::to_string(kMaxPlanLevels));
  }
  std::vector<Holding> held(plan.nodes, Holding(kShareUnits));
  for (std::size_t l = 0; l < plan.levels.size(); ++l) {
    const auto& groups = plan.levels[l].groups;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const Group& group = groups[g];
      if (std::string fault = fault_of(group, plan.nodes); !fault.empty()) {
        return invalid_argument("plan: " + place(l, g) + fault);
      }
      for (int m : group.members) {
        if (!held[m].take(group.begin(), group.end())) {
          return invalid_argument("plan: " + place(l, g) + "node " + std::to_string(m) +
                                  " holds no partial sum of the whole span [" +
                                  std::to_string(group.begin()) + ", " +
                                  std::to_string(group.end()) + "), or stands in it twice");
        }
      }
    }
    // Only now, so that groups of one level cannot build on each other.
    for (const Group& group : groups) {
      for (std::size_t j = 0; j < group.members.size(); ++j) {
        if (group.cuts[j] < group.cuts[j + 1]) {
          held[group.members[j]].put(group.cuts[j], group.cuts[j + 1]);
        }
      }
    }
  }
  std::uint64_t units = 0;
  for (const Holding& h : held) units += h.units();
  if (units != kShareUnits) {
    return invalid_argument("plan: after the last level " + std::to_string(units) +
                            " units are held instead of " + std::to_string(kShareUnits) +
                            ": some sums are still partial");
  }
  return Status::ok();
}

Status validate_partial(const GroupPlan& plan) {
  if (plan.nodes < 1 || plan.nodes > kMaxNodes) {
    return invalid_argument("partial plan: " + std::to_string(plan.nodes) + " nodes, accepted 1.." +
                            std::to_string(kMaxNodes));
  }
  if (plan.levels.size() > 1) {
    return invalid_argument("partial plan: " + std::to_string(plan.levels.size()) +
                            " levels, accepted at most 1");
  }
  std::vector<bool> is_met(plan.nodes, false);
  for (std::size_t g = 0; !plan.levels.empty() && g < plan.levels[0].groups.size(); ++g) {
    const Group& group = plan.levels[0].groups[g];
    std::string fault = fault_of(group, plan.nodes);
    if (fault.empty() && (group.begin() != 0 || group.end() != kShareUnits)) {
      fault = "the span is not the whole buffer";
    }
    for (std::size_t j = 0; fault.empty() && j < group.members.size(); ++j) {
      const int m = group.members[j];
      if (is_met[m]) fault = "node " + std::to_string(m) + " stands in a second place";
      is_met[m] = true;
    }
    if (!fault.empty()) return invalid_argument("partial plan: " + place(0, g) + fault);
  }
  return Status::ok();
}

namespace {

Status validate(const std::vector<GroupPlan>& lanes, const std::string& name, int nodes) {
  if (lanes.size() > kMaxPlanLanes) {
    return invalid_argument("plan set: " + std::to_string(lanes.size()) + " lanes, accepted 1.." +
                            std::to_string(kMaxPlanLanes));
  }
  if (name.size() > kMaxPlanName) {
    return invalid_argument("plan set: a name of " + std::to_string(name.size()) +
                            " bytes, accepted at most " + std::to_string(kMaxPlanName));
  }
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (lanes[i].nodes != nodes) {
      return invalid_argument("plan set: lane " + std::to_string(i) + " has " +
                              std::to_string(lanes[i].nodes) + " nodes, lane 0 has " +
                              std::to_string(nodes));
    }
    if (Status s = validate(lanes[i]); !s) {
      return invalid_argument("lane " + std::to_string(i) + ": " + s.message());
    }
  }
  return Status::ok();
}

Status validate(const RelaxedPlans& relaxed, int nodes) {
  if (relaxed.steps > kMaxRelaxedSteps || relaxed.lanes > kMaxPlanLanes ||
      (relaxed.steps == 0) != (relaxed.lanes == 0)) {
    return invalid_argument("plan set: " + std::to_string(relaxed.steps) + " relaxed steps of " +
                            std::to_string(relaxed.lanes) + " lanes, accepted 1.." +
                            std::to_string(kMaxRelaxedSteps) + " of 1.." +
                            std::to_string(kMaxPlanLanes) + ", or none");
  }
  if (relaxed.table.size() != std::size_t{relaxed.steps} * relaxed.lanes) {
    return invalid_argument("plan set: a table of " + std::to_string(relaxed.table.size()) +
                            " entries for " + std::to_string(relaxed.steps) + " relaxed steps of " +
                            std::to_string(relaxed.lanes) + " lanes");
  }
  for (const std::uint32_t entry : relaxed.table) {
    if (entry >= relaxed.partitions.size()) {
      return invalid_argument("plan set: partial plan " + std::to_string(entry) + " of " +
                              std::to_string(relaxed.partitions.size()));
    }
  }
  if (relaxed.partitions.size() > relaxed.table.size()) {
    return invalid_argument("plan set: more partial plans than are used");
  }
  if (relaxed.chunk_bytes != 0 && relaxed.chunk_bytes < kLeastPlanChunk) {
    return invalid_argument("plan set: relaxed chunks of " + std::to_string(relaxed.chunk_bytes) +
                            " bytes, accepted at least " + std::to_string(kLeastPlanChunk));
  }
  for (std::size_t i = 0; i < relaxed.partitions.size(); ++i) {
    Status s = validate_partial(relaxed.partitions[i]);
    if (s.is_ok() && relaxed.partitions[i].nodes != nodes) {
      s = invalid_argument("partial plan: " + std::to_string(relaxed.partitions[i].nodes) +
                           " nodes, the exact plan has " + std::to_string(nodes));
    }
    if (!s) return invalid_argument("partial plan " + std::to_string(i) + ": " + s.message());
  }
  return Status::ok();
}

}  // namespace

std::size_t PlanSet::windowed_chunks() const {
  constexpr std::size_t kMost = 3;
  std::size_t most = 1;
  for (const GroupPlan& lane : lanes) most = std::max(most, lane.levels.size());
  return std::min(most, kMost);
}

bool is_same_way(const PlanSet& a, const PlanSet& b) {
  return a.lanes == b.lanes && a.name == b.name && a.chunk_bytes == b.chunk_bytes &&
         a.relaxed == b.relaxed && a.small == b.small;
}

Status validate(const PlanSet& plans) {
  if (plans.lanes.empty()) {
    return invalid_argument("plan set: 0 lanes, accepted 1.." + std::to_string(kMaxPlanLanes));
  }
  if (Status s = validate(plans.lanes, plans.name, plans.lanes[0].nodes); !s) return s;
  if (plans.chunk_bytes != 0 && plans.chunk_bytes < kLeastPlanChunk) {
    return invalid_argument("plan set: chunks of " + std::to_string(plans.chunk_bytes) +
                            " bytes, accepted at least " + std::to_string(kLeastPlanChunk));
  }
  if (const SmallPlans& small = plans.small; !small.is_empty()) {
    if (small.bytes < 1 || small.bytes > kMostSmallBytes) {
      return invalid_argument("plan set: small sums of up to " + std::to_string(small.bytes) +
                              " bytes, accepted 1.." + std::to_string(kMostSmallBytes));
    }
    if (Status s = validate(small.lanes, small.name, plans.lanes[0].nodes); !s) {
      return invalid_argument("for small sums: " + s.message());
    }
  }
  return validate(plans.relaxed, plans.lanes[0].nodes);
}

}  // namespace riffle
