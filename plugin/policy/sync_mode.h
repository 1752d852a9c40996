// SyncMode: what an all-reduce of gradients means (RIFFLE_SYNC; docs/policies.md).
//
// Class A gives the same result on all nodes, whatever the job's optimizer. Class B gives each node
// its own, which is right only under an optimizer that is linear in the gradient (SGD with
// momentum, Nesterov's, weight decay) and the same on all nodes.
#pragma once

#include <cstdint>
#include <string>

namespace riffle {

enum class SyncMode : std::uint8_t { kExact = 0, kDsSync = 1, kMoshpit = 2, kShadowSync = 3 };

const char* name_of(SyncMode mode);
// Unknown names give kExact; the knob's own check reported them.
SyncMode sync_mode_of(const std::string& name);

struct SyncSettings {
  SyncMode mode = SyncMode::kExact;
  // moshpit with all levels of a grid in every step: `mode` is exact, for such a step is an exact
  // sum, and plans are grids where the nodes fill one.
  bool all_levels = false;
  double momentum = 0;             // of the job, where it is known
  std::uint64_t shadow_steps = 8;  // from one background round to the next
  std::string note;                // about a knob that cannot be taken as it is; empty: nothing
  std::string refusal;             // why RIFFLE_SYNC asks for more than may be; empty: it does not
  std::uint64_t full_every = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t state_limit_bytes = 0;
  std::uint64_t min_bytes = 0;  // collectives below stay exact
};

// From config(): the mode that RIFFLE_SYNC asks for if the other knobs allow it.
SyncSettings sync_settings();

}  // namespace riffle
