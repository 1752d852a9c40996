// Replanning, part 2: from rates to a new plan. Node 0 weighs and decides; every node prepares and
// switches.
#include <algorithm>
#include <exception>
#include <utility>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/config/log.h"
#include "topology/base/printed.h"

namespace riffle {
namespace {

std::string seconds(double us) { return printed("%.3g s", us / 1e6); }

void trace(const Mesh& mesh, std::uint64_t interval,
           const std::vector<probe::PassiveReport>& reports) {
  if (!is_logged(LogLevel::kTrace)) return;
  std::string text =
      "replanning interval " + std::to_string(interval) + ", Mbit/s as limit (ms), at least:";
  const auto side = [&text](const char* name, const probe::PassiveRate& r) {
    text += std::string(" ") + name + " " + std::to_string(r.limit_kbps / 1000) + " (" +
            std::to_string(r.limit_ms) + "), " + std::to_string(r.peak_kbps / 1000);
  };
  for (std::size_t i = 0; i < reports.size(); ++i) {
    text += "; node " + std::to_string(mesh.number_of(static_cast<int>(i))) + " in " +
            std::to_string(reports[i].active_ms) + " ms";
    side("out", reports[i].out);
    side("in", reports[i].in);
    if (reports[i].far.peak_kbps > 0) side("to other racks", reports[i].far);
  }
  log_trace(text);
}

}  // namespace

// ----------------------------------------------------------------------------------------- node 0

void Replanner::learn() {
  round_ns_ = mesh_->now_ns() - asked_ns_;
  std::vector<probe::PassiveReport> reports(mesh_->size());
  for (const NodeRates& r : gathered_) {
    if (r.rank < mesh_->size()) reports[r.rank] = r.report;
  }
  rates_->update(reports);
  trace(*mesh_, interval_, reports);
  const Fabric live = rates_->fabric();
  ReplanEvent e = event(ReplanEvent::Kind::kReport);
  look_for_slow(live, reports);
  e.reports = std::move(reports);
  tell(e);
  const bool has_groups = !plans_->relaxed.is_empty() || options_.mode == SyncMode::kSparse;
  if (sync_) sync_->interval_ended(round_ns_, has_groups);
  if (!hysteresis_->interval_ended(live) || anybody_left_) return;
  if (weighed_ && !is_news(weighed_->fabric, live)) return decide_on(weighed_);

  is_planning_ = true;
  auto result = std::make_shared<std::shared_ptr<Weighed>>();
  const std::uint64_t began_ns = mesh_->now_ns();
  const bool runs = background_->run(
      [result, live, plans = plans_, options = options_, relaxed = hooks_.relaxed_plans] {
        Result<Weighed> w = weigh(live, *plans, options.planned_bytes, options.plan);
        // The relaxed plans follow the fabric when the exact one does.
        if (w && !plans->relaxed.is_empty()) {
          const bool is_as_before = w->choice.plans.lanes == plans->lanes || !relaxed;
          w->choice.plans.relaxed = is_as_before ? plans->relaxed : relaxed(live);
        }
        if (w) *result = std::make_shared<Weighed>(std::move(*w));
      },
      [this, result, began_ns] {
        is_planning_ = false;
        planning_ns_ = mesh_->now_ns() - began_ns;
        weighed_ = *result;
        if (weighed_ && is_on()) decide_on(weighed_);
      });
  if (!runs) is_planning_ = false;
}

void Replanner::look_for_slow(const Fabric& live,
                              const std::vector<probe::PassiveReport>& reports) {
  const std::vector<int> nodes = slow_->update(live, reports);
  if (nodes.empty() || !hooks_.too_slow || anybody_left_) return;
  std::vector<SlowNode> slow;
  for (const int node : nodes) {
    slow.push_back({node, SlowNodes::rate_of(live.nodes[static_cast<std::size_t>(node)]),
                    slow_->intervals_below(node)});
  }
  hooks_.too_slow(slow);
}

void Replanner::decide_on(const std::shared_ptr<Weighed>& weighed) {
  if (weighed->choice.plans == *plans_) return hysteresis_->confirmed(weighed->fabric);
  const bool is_between = engine_->generations() > 1;  // the last change is not over
  if (anybody_left_ || is_between || !hysteresis_->is_worth_it(*weighed)) return;
  PlanSwitch::Order order;
  order.plans = encode(weighed->choice.plans);
  order.digest = digest(weighed->choice.plans);
  // Several rounds of the tree, and the others' preparing, which is less work than planning was.
  order.horizon_ns = options_.least_horizon_ns + 4 * round_ns_ + 2 * planning_ns_;
  switch_.begin(order);
}

void Replanner::decided(const Result<std::uint64_t>& first_seq) {
  ReplanEvent e = event(first_seq ? ReplanEvent::Kind::kPlanChange : ReplanEvent::Kind::kGivenUp);
  e.cause = probe::describe_change(hysteresis_->planned(), weighed_->fabric);
  e.plan = weighed_->choice.plans.name;
  e.reason = weighed_->choice.reason;
  e.digest = digest(weighed_->choice.plans);
  e.fabric = weighed_->fabric;
  e.time_us = weighed_->choice.time_us;
  e.former_time_us = weighed_->former_us;
  // Also where it was given up: no plan is tried twice for the same rates.
  hysteresis_->changed(weighed_->fabric);
  if (first_seq) {
    e.generation = engine_->newest_generation();
    e.first_seq = *first_seq;
    plans_ = std::make_shared<const PlanSet>(std::move(weighed_->choice.plans));
    log_info(e.cause + ": " + weighed_->choice.reason + "; predicted " + seconds(e.time_us) +
             " instead of " + seconds(e.former_time_us) + " for 32 MiB (plan " +
             std::to_string(e.generation) + ", from chunk " + std::to_string(e.first_seq) + " on)");
  } else {
    e.cause += "; but " + first_seq.status().message();
    log_warn("the plan stays as it is: " + e.cause);
  }
  weighed_.reset();
  tell(e);
}

// ------------------------------------------------------------------------------------ relaxed
// modes

void Replanner::make_agreement() {
  SyncAgreement::Hooks hooks;
  hooks.send = [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> message) {
    channel_->send(peer, FrameType::kControl, kind, std::move(message));
  };
  hooks.number = mesh_->number_of(mesh_->rank());
  hooks.now_ns = [this] { return mesh_->now_ns(); };
  hooks.chunk_bytes = [this] { return relaxed_chunk_bytes(); };
  hooks.sparse_order = [this]() -> Result<SparseOrder> {
    return hooks_.sparse_order(rates_->fabric(), *plans_);
  };
  hooks.changed = [this](const ModeChange& change) { mode_changed(change); };
  sync_ = std::make_unique<SyncAgreement>(
      mesh_->rank(), mesh_->size(),
      SyncAgreementOptions{options_.mode, options_.warmup_steps, options_.least_horizon_ns},
      hooks_.party, background_, std::move(hooks));
}

std::uint64_t Replanner::relaxed_chunk_bytes() const { return plans_->relaxed.chunk_bytes; }

void Replanner::mode_changed(const ModeChange& change) {
  ReplanEvent e = event(ReplanEvent::Kind::kMode);
  e.cause = change.cause;
  e.mode = name_of(change.mode);
  e.first_seq = change.first_call;
  tell(e);
}

ReplanEvent Replanner::event(ReplanEvent::Kind kind) const {
  ReplanEvent e;
  e.kind = kind;
  e.interval = interval_;
  e.collectives = counted_;
  e.time_ns = mesh_->now_ns();
  e.fabric = rates_->fabric();
  return e;
}

void Replanner::tell(const ReplanEvent& event) const {
  if (hooks_.observer != nullptr) hooks_.observer->on_replan(event);
}

// -------------------------------------------------------------------------------- every node again

void Replanner::prepare(const PlanSwitch::Order& order,
                        const std::function<void(Status)>& prepared) {
  struct Made {
    Status status;
    std::unique_ptr<Generation> generation;
  };
  auto made = std::make_shared<Made>();
  const auto make = [made, order, number = engine_->next_generation(), rank = mesh_->rank(),
                     size = mesh_->size(), options = engine_->options()] {
    try {
      const Result<PlanSet> plans = decode_plan_set(order.plans.data(), order.plans.size());
      if (!plans) {
        made->status = plans.status();
      } else if (digest(*plans) != order.digest) {
        made->status = remote_error("the new plan's checksum differs from node 0's");
      } else {
        auto generation = Generation::make(*plans, number, rank, size, options);
        made->status = generation.status();
        if (generation) made->generation = std::move(*generation);
      }
    } catch (const std::exception& e) {
      made->status = internal_error(std::string("cannot take a new plan: ") + e.what());
    }
  };
  const auto take = [this, made, prepared] {
    if (made->status) made->status = engine_->prepare(std::move(made->generation));
    prepared(made->status);
  };
  if (!background_->run(make, take)) prepared(system_error("no thread to prepare a plan"));
}

std::uint64_t Replanner::hold(std::uint64_t horizon_ns) {
  if (engine_->holds_reached() > std::exchange(holds_seen_, engine_->holds_reached())) {
    caution_ = std::min(caution_ * 2, 64.0);
  }
  const double expected = chunks_per_ns_ * static_cast<double>(horizon_ns) * caution_;
  const std::uint64_t seq = engine_->earliest_switch() + options_.burst_chunks +
                            static_cast<std::uint64_t>(std::min(expected, 1e9));
  engine_->hold_at(seq);
  return seq;
}

}  // namespace riffle
