// Plans from the wire: whatever decodes is valid, prints, and encodes to bytes that decode to the
// same.
#include "test/fuzz/target.h"
#include "topology/plan/group_plan.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  constexpr Share kAll = kShareUnits;
  constexpr Share kHalf = kShareUnits / 2;
  const GroupPlan alone{1, {}};
  const GroupPlan ring{3, {{{{Pattern::kRing, {2, 0, 1}, {0, 5, kHalf, kAll}}}}}};
  const GroupPlan grid{
      4,
      {{{{Pattern::kDirect, {0, 1}, {0, kHalf, kAll}}, {Pattern::kRing, {2, 3}, {0, kHalf, kAll}}}},
       {{{Pattern::kDirect, {0, 2}, {0, 7, kHalf}},
         {Pattern::kDirect, {3, 1}, {kHalf, kAll, kAll}}}}}};
  const GroupPlan pairs{
      4,
      {{{{Pattern::kDirect, {0, 1}, {0, kHalf, kAll}}, {Pattern::kRing, {3, 2}, {0, 9, kAll}}}}}};
  const GroupPlan three{4, {{{{Pattern::kDirect, {0, 2, 3}, {0, 5, 5, kAll}}}}}};
  const GroupPlan trees{5, {{{{Pattern::kDoubleTree, {4, 2, 0, 1, 3}, {0, 5, 9, 9, 9, kAll}}}}}};
  return {
      encode(PlanSet{{alone}, "alone"}),
      encode(PlanSet{{ring, ring}, "ring"}),
      encode(PlanSet{{grid}, "grid"}),
      encode(PlanSet{{grid}, "relaxed", 0, {2, 2, {pairs, three, {4, {}}}, {0, 2, 1, 0}, 4096}}),
      encode(PlanSet{{ring}, "ring", 0, {}, {{ring, ring}, "small", 4096}}),
      encode(PlanSet{{trees}, "double-tree"})};
}

void try_input(std::span<const std::uint8_t> input) {
  const Result<PlanSet> plans = decode_plan_set(input.data(), input.size());
  if (!plans) {
    require(!plans.status().message().empty(), "refused without a reason");
    return;
  }
  const Status valid = validate(*plans);
  require(valid.is_ok(), "decoded, yet invalid: " + valid.message());
  const Bytes again = encode(*plans);
  const Result<PlanSet> twice = decode_plan_set(again.data(), again.size());
  require(twice.is_ok() && *twice == *plans, "does not survive another trip over the wire");
  require(!to_json(*plans).empty(), "does not print");
}

}  // namespace riffle::fuzz
