#include "plugin/collective/recording.h"

#include <utility>

#include "plugin/collective/base/sync_mode.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/base/transport_mesh.h"
#include "topology/plan/group_plan.h"

namespace riffle {
namespace {

const char* trigger_name(ReplanEvent::Trigger trigger) {
  switch (trigger) {
    case ReplanEvent::Trigger::kRates:
      return "rates";
    case ReplanEvent::Trigger::kTrial:
      return "trial";
    case ReplanEvent::Trigger::kReturn:
      return "return";
  }
  return "unknown";
}

}  // namespace

std::unique_ptr<Recording> Recording::begin(const RecordOptions& options, TimerService* timers,
                                            std::uint64_t comm_id, int rank, int size,
                                            const ShadowSettings& shadow) {
  if (options.path.empty() && options.trace_every > 0 && rank == 0) {
    log_warn("RIFFLE_TRACE has no effect without RIFFLE_RECORD, beside which traces are written");
  }
  auto record = CommRecord::begin(options, comm_id, rank, size);
  if (!record) return nullptr;
  return std::unique_ptr<Recording>(new Recording(timers, std::move(record),
                                                  CommTrace::begin(options, comm_id, rank, size),
                                                  describe(shadow, size)));
}

Recording::Recording(TimerService* timers, std::unique_ptr<CommRecord> record,
                     std::unique_ptr<CommTrace> trace, std::string shadow_rule)
    : timers_(timers),
      record_(std::move(record)),
      trace_(std::move(trace)),
      shadow_rule_(std::move(shadow_rule)) {}

Recording::~Recording() = default;

TraceOptions Recording::trace() const {
  if (!trace_) return {};
  return {.log = trace_->spans(), .every = trace_->every()};
}

void Recording::trace_event(const char* kind, const std::string& name, const std::string& why) {
  if (trace_) trace_->event(Reactor::now_ns(), kind, name, why);
}

void Recording::flush() {
  record_->flush();
  if (trace_) trace_->flush();
}

void Recording::planned(const Verdict& verdict, const PlanBasis* basis) {
  record_->connected(verdict.hosts);
  if (trace_) trace_->connected(Reactor::now_ns(), verdict.hosts);
  PlanRecord plan{.cause = "connect", .reason = verdict.reason, .digest = verdict.digest};
  if (basis != nullptr) {
    plan.fabric = &basis->fabric;
    plan.is_nominal = basis->is_nominal;
    plan.predicted_us = basis->predicted_us;
    plan.predicted_bytes = basis->planned_bytes;
  }
  const auto plans = decode_plan_set(verdict.plans.data(), verdict.plans.size());
  if (plans) plan.name = plans->name;
  record_->planned(plan);
  trace_event("plan", plan.name, plan.reason);
}

void Recording::connected(const Status& outcome, TransportMesh* mesh) {
  if (!outcome) return failed(outcome.message());
  mesh_ = mesh;
  schedule();
}

void Recording::failed(const std::string& why) {
  record_->failed(why);
  trace_event("failed", "", why);
}

void Recording::survived(const LossRecord& loss, const std::string& what) {
  record_->survived(loss);
  trace_event("loss", std::to_string(loss.left) + " nodes left", what);
}

void Recording::on_replan(const ReplanEvent& event) {
  if (event.kind == ReplanEvent::Kind::kMode) {
    const bool has_rule = event.mode == name_of(SyncMode::kShadowSync);
    record_->mode_changed(
        {event.mode, event.first_seq, event.cause, has_rule ? shadow_rule_ : std::string()});
    trace_event("mode", event.mode, event.cause);
  }
  if (event.kind != ReplanEvent::Kind::kPlanChange) return;
  trace_event("plan", event.plan, event.cause + "; " + event.reason);
  record_->planned({.from_chunk = event.first_seq,
                    .cause = event.cause,
                    .reason = event.reason,
                    .name = event.plan,
                    .digest = event.digest,
                    .fabric = &event.fabric,
                    .is_nominal = event.is_nominal,
                    .trigger = trigger_name(event.trigger),
                    .predicted_us = event.is_nominal ? 0 : event.time_us,
                    .predicted_bytes = event.planned_bytes});
}

void Recording::end() {
  if (has_timer_) timers_->cancel(timer_);
  has_timer_ = false;
  if (mesh_ != nullptr) sample();
  mesh_ = nullptr;
}

void Recording::schedule() {
  has_timer_ = true;
  timer_ = timers_->call_at(Reactor::now_ns() + record_->sample_interval_ns(), [this] {
    has_timer_ = false;
    sample();
    schedule();
  });
}

void Recording::sample() {
  std::vector<LinkSample> links;
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer == mesh_->rank()) continue;
    const LinkCounters counters = mesh_->counters(peer);
    const WireAccount account = mesh_->wire_account(peer).value_or(WireAccount{});
    links.push_back({.peer = peer,
                     .bytes_out = counters.bytes_sent,
                     .bytes_in = counters.bytes_received,
                     .busy_us = account.busy_us,
                     .retransmits = account.retransmits,
                     .rtt_us = account.rtt_us});
  }
  if (relaxed_) {
    const RelaxedTotals relaxed = relaxed_();
    record_->sample(Reactor::now_ns(), links, &relaxed);
  } else {
    record_->sample(Reactor::now_ns(), links);
  }
}

}  // namespace riffle
