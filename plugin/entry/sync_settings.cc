#include "plugin/entry/sync_settings.h"

#include <charconv>
#include <system_error>
#include <utility>

#include "plugin/tuner/tuner.h"

namespace riffle {

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

namespace {

// Why a mode that nodes agree on at a replanning interval, and that keeps a state on each, cannot
// be; or empty.
std::string obstacle(const Config& c, const std::string& wish) {
  if (c.deterministic || c.epoch == 0) {
    return wish + " begins when the nodes agree at a replanning interval, and " +
           (c.deterministic ? "RIFFLE_DETERMINISTIC=1" : "RIFFLE_EPOCH=0") + " has none";
  }
  return "";
}

std::string obstacle_beside_sync(const Config& c, const std::string& name) {
  if (c.sync == "exact") return obstacle(c, name);
  return name + " and RIFFLE_SYNC=" + c.sync +
         " are two meanings of the same call: one of the two; sums are exact";
}

SyncSettings with_sparse(const Config& c, SyncSettings s, const SparseWish& wish) {
  const std::string name = "RIFFLE_SPARSE=" + c.sparse;
  s.sparse.density = wish.density;
  s.sparse.is_auto = wish.is_auto;
  s.sparse.ramp_steps = static_cast<std::uint64_t>(c.sparse_ramp);
  s.sparse.teams = static_cast<std::uint64_t>(c.sparse_teams);
  s.sparse.residual = c.sparse_residual == "local"     ? sparse::ResidualPolicy::kLocal
                      : c.sparse_residual == "partial" ? sparse::ResidualPolicy::kPartial
                      : c.sparse_residual == "ef21"    ? sparse::ResidualPolicy::kEf21
                                                       : sparse::ResidualPolicy::kGlobal;
  s.refusal = obstacle_beside_sync(c, name);
  s.mode = s.refusal.empty() ? SyncMode::kSparse : SyncMode::kExact;
  s.all_levels = false;
  return s;
}

SyncSettings with_narrow(const Config& c, SyncSettings s) {
  const std::string name = "RIFFLE_WIRE=" + c.wire;
  s.wire = c.wire == "bf16" ? WireFormat::kBfloat16 : WireFormat::kFloat8Block;
  s.refusal = obstacle_beside_sync(c, name);
  s.mode = s.refusal.empty() ? SyncMode::kNarrow : SyncMode::kExact;
  s.all_levels = false;
  return s;
}

}  // namespace

std::size_t collnet_min_bytes(const Config& c) {
  return c.collnet_min_bytes < 0 ? kSmallCollective : static_cast<std::size_t>(c.collnet_min_bytes);
}

SyncSettings sync_settings(const Config& c) {
  SyncSettings s;
  s.mode = sync_mode_of(c.sync);
  s.full_every = static_cast<std::uint64_t>(c.full_every);
  s.warmup_steps = static_cast<std::uint64_t>(c.warmup_steps);
  s.state_limit_bytes = static_cast<std::uint64_t>(c.state_limit_mb) << 20;
  s.min_bytes = collnet_min_bytes(c);
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
    s = with_sparse(c, std::move(s), sparse);
    if (c.wire != "exact" && s.refusal.empty()) {
      s.note = "RIFFLE_WIRE=" + c.wire + " and RIFFLE_SPARSE=" + c.sparse +
               ", which sends float32: RIFFLE_WIRE has no effect";
    }
    return s;
  }
  if (c.wire != "exact") return with_narrow(c, std::move(s));
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
    s.refusal = obstacle(c, "RIFFLE_SYNC=" + c.sync);
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
