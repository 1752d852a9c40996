#include "plugin/collective/base/sync_mode.h"

#include <algorithm>

namespace riffle {

const char* name_of(SyncMode mode) {
  switch (mode) {
    case SyncMode::kExact:
      return "exact";
    case SyncMode::kDsSync:
      return "ds_sync";
    case SyncMode::kMoshpit:
      return "moshpit";
    case SyncMode::kShadowSync:
      return "shadow_sync";
    case SyncMode::kSparse:
      return "sparse";
    case SyncMode::kNarrow:
      return "narrow";
  }
  return "?";
}

SyncMode sync_mode_of(const std::string& name) {
  for (const SyncMode mode : {SyncMode::kDsSync, SyncMode::kMoshpit, SyncMode::kShadowSync}) {
    if (name == name_of(mode)) return mode;
  }
  return SyncMode::kExact;
}

double density_in(const SparseSettings& settings, std::uint64_t step) {
  if (step >= settings.ramp_steps) return settings.density;
  std::uint64_t stages = 0;
  for (double d = 0.25; d > settings.density; d /= 4) ++stages;
  double density = 0.25;
  for (std::uint64_t i = step * stages / settings.ramp_steps; i > 0; --i) density /= 4;
  return std::max(density, settings.density);
}

}  // namespace riffle
