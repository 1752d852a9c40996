#include "plugin/policy/sync_mode.h"

#include <charconv>
#include <system_error>

#include "plugin/config/config.h"

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
  }
  return "?";
}

SyncMode sync_mode_of(const std::string& name) {
  for (const SyncMode mode : {SyncMode::kDsSync, SyncMode::kMoshpit, SyncMode::kShadowSync}) {
    if (name == name_of(mode)) return mode;
  }
  return SyncMode::kExact;
}

SyncSettings sync_settings() {
  const Config& c = config();
  SyncSettings s;
  s.mode = sync_mode_of(c.sync);
  s.full_every = static_cast<std::uint64_t>(c.full_every);
  s.warmup_steps = static_cast<std::uint64_t>(c.warmup_steps);
  s.state_limit_bytes = static_cast<std::uint64_t>(c.state_limit_mb) << 20;
  s.min_bytes = static_cast<std::uint64_t>(c.collnet_min_bytes);
  s.shadow_steps = static_cast<std::uint64_t>(c.shadow_steps);
  if (s.mode == SyncMode::kMoshpit && c.moshpit_levels == "all") {
    s.mode = SyncMode::kExact;
    s.all_levels = true;
    if (!c.plan.empty() && c.plan != "grid") {
      s.note = "RIFFLE_PLAN=" + c.plan + " and RIFFLE_MOSHPIT_LEVELS=all, which asks for " +
               "RIFFLE_PLAN=grid: the plan is " + c.plan + ", sums are exact all the same";
      s.all_levels = false;
    }
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
  } else if (c.deterministic || c.epoch == 0) {
    s.refusal = "RIFFLE_SYNC=" + c.sync + " begins when the nodes agree at an epoch, and " +
                (c.deterministic ? "RIFFLE_DETERMINISTIC=1" : "RIFFLE_EPOCH=0") + " has none";
  } else if (c.on_loss == "continue") {
    s.refusal = "RIFFLE_SYNC=" + c.sync +
                " keeps a state on every node, which RIFFLE_ON_LOSS=continue cannot go on without "
                "yet: one of the two";
  }
  if (!s.refusal.empty()) s.mode = SyncMode::kExact;
  return s;
}

}  // namespace riffle
