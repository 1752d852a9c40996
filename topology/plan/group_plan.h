// GroupPlan: the groups, level by level, in which an all-reduce runs. A value type; everything that
// a node has to know to take part is in it, so that equal plans mean equal behaviour.
//
// The buffer is the interval [0, kShareUnits) of "units"; unit u stands for element
// floor(u * count / kShareUnits), see element_of(). At level 0 every node holds its own
// contribution to the whole buffer. A group reduces one span: its members, who all hold a partial
// sum of the span, exchange so that member j alone holds the group's sum of shard j, that is
// [cuts[j], cuts[j+1]). Level k works on what level k-1 left. After the last level every unit is
// held by exactly one node and is the sum over all nodes; the same groups, walked backwards, gather
// it.
//
// Expressed in this form (docs/algorithms.md): the uneven butterfly is one level with one `direct`
// group; the classic ring one level with one `ring` group; racks x rails two levels;
// halving-doubling log2 N levels of pairs; a binomial tree log2 N levels of pairs whose second
// member owns nothing (cuts[1] == cuts[2]). A node may stand in several groups of one level as long
// as spans are disjoint.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topology/base/status.h"
#include "topology/plan/patterns/pattern.h"

namespace riffle {

struct Group {
  Pattern pattern = Pattern::kDirect;
  std::vector<int> members;  // distinct ranks; their order is the order of reduction
  std::vector<Share> cuts;   // members.size() + 1 values, non-decreasing; span = [front, back)

  Share begin() const { return cuts.front(); }
  Share end() const { return cuts.back(); }
  bool operator==(const Group&) const = default;
};

struct Level {
  std::vector<Group> groups;
  bool operator==(const Level&) const = default;
};

struct GroupPlan {
  int nodes = 0;
  std::vector<Level> levels;  // empty iff nodes == 1
  bool operator==(const GroupPlan&) const = default;
};

// What the relaxed modes run over (docs/policies.md), which sum within the groups of one step at a
// time: a table of partial plans. A partial plan has one level, every node in at most one group,
// and every group spans the whole buffer; a node in no group keeps what it has.
struct RelaxedPlans {
  std::uint32_t steps = 0, lanes = 0;  // both 0: there are none
  std::vector<GroupPlan> partitions;   // the distinct ones
  std::vector<std::uint32_t> table;  // steps x lanes indices of partitions, lanes counting fastest
  std::uint32_t chunk_bytes = 0;     // that a call is best cut into; 0: as the engine is set

  bool is_empty() const { return steps == 0; }
  // Any step and lane.
  std::uint32_t index(std::uint64_t step, std::uint64_t lane) const {
    return table[step % steps * lanes + lane % lanes];
  }
  bool operator==(const RelaxedPlans&) const = default;
};

// What small sums run over, if that is something else. A small sum takes as long as its messages
// are many and its steps one after the other, a large one as long as the busiest link has to carry.
struct SmallPlans {
  std::vector<GroupPlan> lanes;  // as in PlanSet; none: there are no such plans
  std::string name;
  std::uint32_t bytes = 0;  // all-reduces of at most as many, as posted, take them

  bool is_empty() const { return lanes.empty(); }
  bool operator==(const SmallPlans&) const = default;
};

// Several shuffled variants of a plan; chunk number s of a communicator uses lanes[s %
// lanes.size()].
struct PlanSet {
  std::vector<GroupPlan> lanes;  // at least one, all of the same number of nodes
  std::string name;              // e.g. "racks x rails", human-readable
  // Chunks that the planner found best for the size it planned for; 0: whatever the engine is set
  // to, which is also the most it takes.
  std::uint32_t chunk_bytes = 0;
  RelaxedPlans relaxed;
  SmallPlans small;
  // Of sums that come in calls of kWindowCall, or not much less, so much is in the works at a node
  // at once: what keeps the network busy; 0: all.
  static constexpr std::size_t kWindowCall = 128 << 10, kWindowSum = 8 * kWindowCall;
  std::uint32_t busy_bytes = 0;
  // That such a call is cut into at least then: with one per level all levels have work early and
  // late. No more than leave each above 32 KiB, where shares get coarse (Lanes::grain_bytes).
  std::size_t windowed_chunks() const;
  bool operator==(const PlanSet&) const = default;
};

// Equal but for busy_bytes, which follows every rate and by itself makes no other plan.
bool is_same_way(const PlanSet& a, const PlanSet& b);

// The element where unit u begins in a buffer of `count` elements: monotone in u, 0 at 0, count at
// kShareUnits; inner results are multiples of `grain` elements (a power of two).
std::uint64_t element_of(Share u, std::uint64_t count, std::uint64_t grain);

// ok iff walking the plan sums every unit over all nodes exactly once and leaves it with one owner.
// Also checks indices, sizes and monotone cuts, so that a plan from the wire is safe to run.
Status validate(const GroupPlan& plan);
Status validate(const PlanSet& plans);
// ok iff `plan` is a partial plan, as RelaxedPlans has them.
Status validate_partial(const GroupPlan& plan);

// Equal plans have equal digests; used to compare plans across nodes.
std::uint64_t digest(const PlanSet& plans);

// Wire form: little-endian, self-delimiting; decode never trusts a length and validates the result.
std::vector<std::uint8_t> encode(const PlanSet& plans);
Result<PlanSet> decode_plan_set(const std::uint8_t* data, std::size_t size);

// For readers and tools.
std::string to_text(const GroupPlan& plan);
std::string to_json(const PlanSet& plans);

}  // namespace riffle
