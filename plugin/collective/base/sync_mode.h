// SyncMode: what an all-reduce of gradients means (RIFFLE_SYNC, RIFFLE_WIRE; docs/policies.md;
// RIFFLE_SPARSE; docs/sparse.md).
//
// Class A gives the same result on all nodes, whatever the job's optimizer. Class B gives each node
// its own, which is right only under an optimizer that is linear in the gradient (SGD with
// momentum, Nesterov's, weight decay) and the same on all nodes.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/collective/base/shadow_settings.h"
#include "sparse/residual.h"

namespace riffle {

enum class SyncMode : std::uint8_t {
  kExact = 0,
  kDsSync = 1,
  kMoshpit = 2,
  kShadowSync = 3,
  kSparse = 4,
  kNarrow = 5  // sums that travel in a narrower type (narrow_calls.h)
};

const char* name_of(SyncMode mode);
// Class A, and no groups are needed for it.
constexpr bool is_same_on_all_nodes(SyncMode mode) {
  return mode == SyncMode::kExact || mode == SyncMode::kSparse || mode == SyncMode::kNarrow;
}
// Unknown names give kExact; the knob's own check reported them.
SyncMode sync_mode_of(const std::string& name);

struct SparseSettings {
  double density = 0.01;         // of the entries that are sent, in (0, 1]
  bool is_auto = false;          // only where that is predicted to be faster
  std::uint64_t ramp_steps = 0;  // in which the density comes down from 1/4
  std::uint64_t teams = 0;       // 0: as the planner thinks best
  sparse::ResidualPolicy residual = sparse::ResidualPolicy::kGlobal;
};

// In step `step` of the mode: 1/4, 1/16, ... above the target, each for an equal part of the ramp.
double density_in(const SparseSettings& settings, std::uint64_t step);

// Of kNarrow: what gradients and their partial sums are on the wire.
enum class WireFormat : std::uint8_t { kBfloat16 = 0, kFloat8Block = 1 };

struct SyncSettings {
  SyncMode mode = SyncMode::kExact;
  // moshpit with all levels of a grid in every step: `mode` is exact, for such a step is an exact
  // sum, and plans are grids where the nodes fill one.
  bool all_levels = false;
  double momentum = 0;             // of the job, where it is known
  std::uint64_t shadow_steps = 1;  // from one background round to the next
  ShadowSettings shadow;           // what such a round does
  std::string note;                // about a knob that cannot be taken as it is; empty: nothing
  std::string refusal;             // why more is asked for than may be; empty: it is not
  std::uint64_t full_every = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t state_limit_bytes = 0;
  std::uint64_t min_bytes = 0;              // collectives below stay exact
  SparseSettings sparse;                    // of kSparse
  WireFormat wire = WireFormat::kBfloat16;  // of kNarrow
  bool survives_losses = false;  // the job goes on without nodes that are lost (survivors.h)
};

}  // namespace riffle
