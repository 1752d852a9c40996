// Patterns: how the members of one group exchange.
//
// A pattern is one file in this folder that implements GroupExchange, and one line in patterns.def.
// The planner, the wire form, the engine and the tools ask the interface; none of them names a
// pattern. Members are named by their place in the group. Pure, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace riffle {

using Share = std::uint32_t;  // of a buffer (group_plan.h)
inline constexpr Share kShareUnits = 1u << 30;

enum class Pattern : std::uint8_t {
#define RIFFLE_PATTERN(name, function, code) name = code,
#include "topology/plan/patterns/patterns.def"
#undef RIFFLE_PATTERN
};

inline constexpr auto kPatterns = std::to_array<Pattern>({
#define RIFFLE_PATTERN(name, function, code) Pattern::name,
#include "topology/plan/patterns/patterns.def"
#undef RIFFLE_PATTERN
});

enum class Phase { kReduceScatter, kAllGather };

// What one member sends to another in one phase.
struct PairTraffic {
  int from = 0, to = 0;
  std::uint64_t units = 0, shards = 0;
  bool operator==(const PairTraffic&) const = default;
};

// Each shard of the group's span travels up a tree of the members to its owner, as partial sums: a
// member waits for those of its children, adds its own and sends one on. The sum comes down a tree,
// too. This is all that an exact pattern is: every contribution is taken once, in an order that the
// pattern sets, and every member receives the owner's bits.
class GroupExchange {
 public:
  virtual ~GroupExchange() = default;

  virtual const char* name() const = 0;

  // The trees of shard `shard` in a group of `size` members; the root is member `shard`. Where the
  // partial sum of a member that is not the root goes, ...
  virtual int partial_to(int size, int shard, int member) const = 0;
  // ... and whose partial sums it waits for, in rising order.
  virtual std::vector<int> partials_from(int size, int shard, int member) const = 0;
  // Whom a member that is not the root has the sum from, and whom it sends it to, in the order of
  // sending: by default the same tree downwards.
  virtual int sum_from(int size, int shard, int member) const {
    return partial_to(size, shard, member);
  }
  virtual std::vector<int> sum_to(int size, int shard, int member) const {
    return partials_from(size, shard, member);
  }

  // The most hops from a member to the root of a shard.
  virtual int depth(int size) const = 0;

  // To how many others a member sends partial sums, at most.
  virtual int partners(int size) const { return size - 1; }

  // True: all contributions are added at once, in the order of the members, so that a sum does not
  // depend on who owns the shard. Then depth() is 1. Otherwise a member adds its children's partial
  // sums, in rising order, and last its own.
  virtual bool sums_in_member_order() const { return false; }

  // For the planner: false if a member passes on the partial sums of all hops to one other. These
  // leave in the order of the chunks, so a chunk sets out when the last hop of the one before is
  // done.
  virtual bool overlaps_chunks() const { return true; }

  // One phase, in which shard j is [cuts[j], cuts[j + 1]). A pair may come several times.
  virtual std::vector<PairTraffic> traffic(std::span<const Share> cuts, Phase phase) const;
};

// Null where the wire brought a code that no pattern has.
const GroupExchange* find_exchange(Pattern pattern);
// Precondition: the pattern is known, as in every plan that has passed validate().
const GroupExchange& exchange_of(Pattern pattern);

}  // namespace riffle
