#include "plugin/entry/options.h"

#include <algorithm>
#include <utility>

#include "plugin/entry/encryption.h"
#include "plugin/entry/sync_settings.h"
#include "plugin/entry/transport_options.h"
#include "plugin/kernels/reduce.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::int64_t kStallWarningS = 60;

Wish wish_of(const std::string& text) {
  return text == "on" || text == "tcp" ? Wish::kOn : text == "off" ? Wish::kOff : Wish::kAuto;
}

std::uint64_t seconds(std::int64_t s) { return static_cast<std::uint64_t>(s) * kSecond; }

bool survives_losses(const Config& c) { return c.on_loss == "continue"; }

identity::Options identity_options(const Config& c) {
  const bool has_mode = c.sync != "exact" || c.wire != "exact" || sparse_wish(c.sparse).is_on;
  identity::Options options;
  options.is_needed = c.identity == "on" || (c.identity == "auto" && has_mode);
  options.is_wanted = options.is_needed || (c.identity == "auto" && c.valid_length);
  options.says_totals = c.identity == "on";
  return options;
}

PlanOptions plan_options(const Config& c, const SyncSettings& sync) {
  PlanOptions options;
  options.max_lanes = static_cast<int>(c.lanes);
  options.only = c.plan;
  if (options.only.empty() && sync.all_levels) {
    options.only = "grid";
    options.only_if_it_applies = true;
  }
  return options;
}

ConnectOptions connect_options(const Config& c, const identity::Options& identity) {
  ConnectOptions options;
  options.collnet = wish_of(c.collnet);
  options.probe = wish_of(c.probe);
  options.is_deterministic = c.deterministic;
  options.survives_losses = survives_losses(c);
  options.moves_valid_elements = c.valid_length && identity.is_wanted;
  options.node_name = c.node_name;
  options.rack = c.rack;
  options.knobs = decision_knobs(c);
  options.fabric = c.fabric;
  options.fabric_save = c.fabric_save;
  options.topology = c.topology;
  options.sync = sync_settings(c);
  options.plan = plan_options(c, options.sync);
  return options;
}

SessionOptions session_options(const Config& c, const ConnectOptions& connect) {
  SessionOptions options;
  options.engine.chunk_bytes = static_cast<std::size_t>(c.chunk_bytes);
  options.engine.piece_bytes = static_cast<std::size_t>(c.piece_bytes);
  options.replan.collectives = c.deterministic ? 0 : static_cast<std::uint64_t>(c.epoch);
  options.replan.planned_bytes = kPlannedBytes;
  options.replan.plan = connect.plan;
  options.replan.least_kbps = c.min_rate * 1000;
  options.replan.trusts_fabric = c.fabric_trust;
  options.replan.warmup_steps = connect.sync.warmup_steps;
  options.survivors.is_on = connect.survives_losses;
  options.survivors.rescales = c.rescale;
  options.connect_timeout_ns = seconds(std::min(c.connect_timeout_s, c.peer_timeout_s));
  options.peer_timeout_ns = seconds(c.peer_timeout_s);
  options.stall_ns = seconds(c.stall_s);
  options.stall_warning_ns = seconds(kStallWarningS);
  return options;
}

TunerSettings tuner_settings(const Config& c, const SyncSettings& sync) {
  // Over NET a lost node ends an all-reduce, whatever its size.
  return {.is_enabled = c.collnet != "off",
          .min_bytes = survives_losses(c) ? 0 : collnet_min_bytes(c),
          .falls = c.collnet_min_bytes < 0 && sync.mode == SyncMode::kExact};
}

}  // namespace

Options options_from(const Config& c) {
  Options options;
  options.isa = c.isa;
  options.transport = transport_options(c);
  if (auto encryption = encryption_options(c)) {
    options.transport.encryption = std::move(*encryption);
  } else {
    options.transport.encryption.is_on = true;  // nothing is to go out in the clear
    options.refusal = encryption.status();
  }
  options.net.piece_bytes = static_cast<std::size_t>(c.piece_bytes);
  options.identity = identity_options(c);
  CollectiveOptions& collective = options.collective;
  collective.connect = connect_options(c, options.identity);
  collective.session = session_options(c, collective.connect);
  if (survives_losses(c)) collective.keep_bytes = static_cast<std::size_t>(c.keep_bytes);
  collective.record = {c.record, static_cast<std::uint64_t>(c.record_bytes),
                       static_cast<std::uint32_t>(c.trace)};
  options.tuner = tuner_settings(c, collective.connect.sync);
  options.wire = wire_choice(c);
  const bool is_wanted = c.collnet == "on" || c.collnet == "tcp";
  options.has_collectives = options.wire.name.empty() || is_wanted;
  options.passes_on_collnet = !options.has_collectives && c.collnet != "off";
  if (!options.wire.name.empty() && c.collnet == "on") options.transport.name = kOverLibrary;
  return options;
}

const Options& options() {
  static const Options& all = *[] {  // outlives every thread
    auto* const made = new Options(options_from(config()));
    limit_isa(made->isa);
    if (made->wire.name.empty()) made->rdma = find_rdma(rdma_choice(config()));
    made->refusal = refusal_of(*made, config_problems());
    if (made->rdma.is_left_to_nccl || !made->refusal) made->has_collectives = false;
    if (!made->refusal) made->passes_on_collnet = false;  // nothing is to go out in the clear
    if (!made->has_collectives) made->identity = {};      // no events are asked for
    return made;
  }();
  return all;
}

}  // namespace riffle
