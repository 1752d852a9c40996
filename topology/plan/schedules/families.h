// Schedule families: each proposes cycles for a fabric. Nothing here is verified; schedules.h does
// that with every proposal.
#pragma once

#include <cstdint>
#include <vector>

#include "topology/plan/schedules/cycle.h"

namespace riffle {

// What a family draws its labels from, and its limits.
struct FamilyOptions {
  std::uint64_t seed = 1;
  int max_lanes = 32;
  int dimensions = 0;  // of grids; 0: any
};

// Full grids with rectangular factors: axes inside racks first, if racks are of equal size.
std::vector<Cycle> propose_grids(const FabricView& view, const FamilyOptions& options);

// DS-Sync's schedules of racks and slots, for racks of equal size. A: racks, then slots in turn. B:
// one slot crosses while the rest of each rack meets. C: whole racks and B in turn.
std::vector<Cycle> propose_reference(const FabricView& view, const FamilyOptions& options);

// How pairs are rationed: every `every`th step of a lane crosses racks, and a slow node takes part
// in every `slow`th step only, with so many others that its groups have two members on average.
enum class Crossing { kNone, kHalf, kAll, kGuests };
struct Ration {
  Crossing crossing = Crossing::kNone;
  int every = 1;
  int slow = 1;
};
std::vector<Ration> rations(const FabricView& view, const FamilyOptions& options);
Cycle rationed_pairs(const FabricView& view, const Ration& ration, const FamilyOptions& options);

// Moshpit where no full grid fits: an incomplete grid by its keys (moshpit_keys.h), and random
// groups.
std::vector<Cycle> propose_incomplete_grids(const FabricView& view, const FamilyOptions& options);
std::vector<Cycle> propose_random_groups(const FabricView& view, const FamilyOptions& options);

// Factors of n, each at least 2, in falling order; at most `limit` of them in no family's interest.
std::vector<std::vector<int>> factorizations(int n, std::size_t limit);

}  // namespace riffle
