#include "plugin/collective/base/sync_mode.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "plugin/config/config.h"
#include "plugin/tuner/tuner.h"

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
  }
  return "?";
}

SyncMode sync_mode_of(const std::string& name) {
  for (const SyncMode mode : {SyncMode::kDsSync, SyncMode::kMoshpit, SyncMode::kShadowSync}) {
    if (name == name_of(mode)) return mode;
  }
  return SyncMode::kExact;
}

SparseWish sparse_wish(const std::string& text) {
  SparseWish wish;
  if (text.empty() || text == "off") return wish;
  const std::string prefix = "auto:";
  wish.is_auto = text.starts_with(prefix);
  const char* begin = text.data() + (wish.is_auto ? prefix.size() : 0);
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(begin, end, wish.density);
  if (read.ec != std::errc() || read.ptr != end || !(wish.density > 0 && wish.density <= 1)) {
    wish.wrong = "RIFFLE_SPARSE=" + text +
                 ": accepted are off, a density above 0 and up to 1 (0.01 sends one element in a "
                 "hundred), and auto:0.01; sums are exact";
    return wish;
  }
  wish.is_on = true;
  return wish;
}

double density_in(const SparseSettings& settings, std::uint64_t step) {
  if (step >= settings.ramp_steps) return settings.density;
  std::uint64_t stages = 0;
  for (double d = 0.25; d > settings.density; d /= 4) ++stages;
  double density = 0.25;
  for (std::uint64_t i = step * stages / settings.ramp_steps; i > 0; --i) density /= 4;
  return std::max(density, settings.density);
}

namespace {

// Why a mode that nodes agree on at a replanning interval, and that keeps a state on each, cannot
// be; or empty.
std::string obstacle(const std::string& wish) {
  const Config& c = config();
  if (c.deterministic || c.epoch == 0) {
    return wish + " begins when the nodes agree at a replanning interval, and " +
           (c.deterministic ? "RIFFLE_DETERMINISTIC=1" : "RIFFLE_EPOCH=0") + " has none";
  }
  return "";
}

SyncSettings with_sparse(SyncSettings s, const SparseWish& wish) {
  const Config& c = config();
  const std::string name = "RIFFLE_SPARSE=" + c.sparse;
  s.sparse.density = wish.density;
  s.sparse.is_auto = wish.is_auto;
  s.sparse.ramp_steps = static_cast<std::uint64_t>(c.sparse_ramp);
  s.sparse.teams = static_cast<std::uint64_t>(c.sparse_teams);
  s.sparse.residual = c.sparse_residual == "local"     ? sparse::ResidualPolicy::kLocal
                      : c.sparse_residual == "partial" ? sparse::ResidualPolicy::kPartial
                      : c.sparse_residual == "ef21"    ? sparse::ResidualPolicy::kEf21
                                                       : sparse::ResidualPolicy::kGlobal;
  if (c.sync != "exact") {
    s.refusal = name + " and RIFFLE_SYNC=" + c.sync +
                " are two meanings of the same call: one of the two; sums are exact";
  } else {
    s.refusal = obstacle(name);
  }
  s.mode = s.refusal.empty() ? SyncMode::kSparse : SyncMode::kExact;
  s.all_levels = false;
  return s;
}

}  // namespace

SyncSettings sync_settings() {
  const Config& c = config();
  SyncSettings s;
  s.mode = sync_mode_of(c.sync);
  s.full_every = static_cast<std::uint64_t>(c.full_every);
  s.warmup_steps = static_cast<std::uint64_t>(c.warmup_steps);
  s.state_limit_bytes = static_cast<std::uint64_t>(c.state_limit_mb) << 20;
  s.min_bytes = collnet_min_bytes();
  s.shadow_steps = static_cast<std::uint64_t>(c.shadow_steps);
  s.survives_losses = c.on_loss == "continue";
  if (s.mode == SyncMode::kMoshpit && c.moshpit_levels == "all") {
    s.mode = SyncMode::kExact;
    s.all_levels = true;
    if (!c.plan.empty() && c.plan != "grid") {
      s.note = "RIFFLE_PLAN=" + c.plan + " and RIFFLE_MOSHPIT_LEVELS=all, which asks for " +
               "RIFFLE_PLAN=grid: the plan is " + c.plan + ", sums are exact all the same";
      s.all_levels = false;
    }
  }
  const SparseWish sparse = sparse_wish(c.sparse);
  if (!sparse.wrong.empty()) {
    s.note = sparse.wrong;
  } else if (sparse.is_on) {
    return with_sparse(std::move(s), sparse);
  }
  if (s.mode == SyncMode::kExact) return s;
  if (!c.momentum.empty() && s.mode != SyncMode::kShadowSync) {
    const char* end = c.momentum.data() + c.momentum.size();
    const auto read = std::from_chars(c.momentum.data(), end, s.momentum);
    if (read.ec != std::errc() || read.ptr != end || !(s.momentum >= 0 && s.momentum < 1)) {
      s.momentum = 0;
      s.note = "RIFFLE_MOMENTUM=" + c.momentum +
               ": accepted are numbers from 0 to below 1; it counts as not known";
    }
  }
  if (c.optimizer != "sgd") {
    s.refusal =
        "RIFFLE_SYNC=" + c.sync + " gives every node its own gradients, which only SGD " +
        "(with momentum, Nesterov's, weight decay) may be given: say RIFFLE_OPTIMIZER=sgd " +
        "if that is what the job uses";
  } else {
    s.refusal = obstacle("RIFFLE_SYNC=" + c.sync);
  }
  if (s.mode == SyncMode::kShadowSync) {
    std::string wrong;
    s.shadow = shadow_settings(
        {c.shadow_rule, c.shadow_pull, c.easgd_follow, c.block_rate, c.block_momentum}, &wrong);
    if (s.refusal.empty() && !wrong.empty()) s.refusal = wrong + "; sums are exact";
  }
  if (!s.refusal.empty()) s.mode = SyncMode::kExact;
  return s;
}

}  // namespace riffle
