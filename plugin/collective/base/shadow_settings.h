// ShadowSettings: what the background rounds of shadow_sync bring (RIFFLE_SHADOW_RULE and the
// numbers that belong to it; docs/policies.md has the mathematics and where each rule comes from).
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "topology/plan/schedules/schedules.h"

namespace riffle {

enum class ShadowVariant : std::uint8_t { kDelta, kInterpolation, kBmuf, kEasgd, kFir };

const char* name_of(ShadowVariant variant);
// Nothing: no such rule.
std::optional<ShadowVariant> shadow_variant_of(const std::string& name);

// Its rounds are over all nodes: what they do to one node they must do to all. The others may run
// within groups that change.
bool is_over_all(ShadowVariant variant);
// It draws nodes towards a centre, which keeps their differences small and changes their mean's
// speed.
bool has_pull(ShadowVariant variant);

struct ShadowSettings {
  ShadowVariant variant = ShadowVariant::kDelta;
  double pull = 0.5;           // interpolation, bmuf, easgd: alpha of ShadowSync, in (0, 1)
  double follow = 0.9;         // easgd: beta of EASGD, in (0, 1]
  double block_rate = 1;       // bmuf: zeta, in (0, 2]
  double block_momentum = -1;  // bmuf: eta, in [0, 1); below 0: 1 - 1 / nodes

  double momentum_among(int nodes) const {
    return block_momentum >= 0 ? block_momentum : 1 - 1.0 / nodes;
  }
};

// How fast the mean of the nodes moves, of the speed that exact sums would give it, where gradients
// are steady and every round takes the part `busy` (0..1) of the steps from one to the next.
double shadow_speed(const ShadowSettings& settings, int nodes, double busy);

// Human-readable: "bmuf (pull 0.5, block momentum 0.875, block rate 1)".
std::string describe(const ShadowSettings& settings, int nodes);

// What pattern its rounds need.
void put_into(const ShadowSettings& settings, ScheduleOptions* options);

// From the texts of the knobs, of which only those are looked at that the rule uses; `wrong` says
// of the first that cannot be taken which it is and what is accepted.
struct ShadowKnobs {
  std::string rule, pull, follow, block_rate, block_momentum;
};
ShadowSettings shadow_settings(const ShadowKnobs& knobs, std::string* wrong);

}  // namespace riffle
