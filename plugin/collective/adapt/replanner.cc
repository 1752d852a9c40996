#include "plugin/collective/adapt/replanner.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/adapt/in_seconds.h"
#include "plugin/collective/base/byte_io.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

constexpr std::uint64_t kTrialCollectives = 2;

constexpr std::uint64_t kProcessorOnly = 90;  // percent
// Of what this communicator moves: what others move on the same NICs then makes its rates rough.
constexpr std::uint64_t kRoughPercent = 20;
constexpr double kLeastBurstUs = 20'000;
constexpr double kQuick = 0.9;  // of the time expected: some rates are higher than believed

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

Replanner::Replanner(Mesh* mesh, ControlChannel* channel, ThreadedEngine* engine,
                     TimerService* timers, Background* background, ReplanOptions options,
                     ReplanHooks hooks)
    : mesh_(mesh),
      channel_(channel),
      engine_(engine),
      timers_(timers),
      background_(background),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      switch_(
          mesh->rank(), mesh->size(),
          {.number = mesh->number_of(mesh->rank()),
           .send =
               [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> message) {
                 channel_->send(peer, FrameType::kControl, kind, std::move(message));
               },
           .prepare =
               [this](const PlanSwitch::Order& order, const std::function<void(Status)>& prepared) {
                 prepare(order, prepared);
               },
           .hold = [this](std::uint64_t horizon_ns) { return hold(horizon_ns); },
           .use = [this](std::uint64_t seq) { engine_->switch_at(seq); },
           .drop = [this] { engine_->drop_prepared(); },
           .decided = [this](const Result<std::uint64_t>& seq) { decided(seq); }}),
      sampler_(mesh, timers) {
  for (const int child : {2 * mesh->rank() + 1, 2 * mesh->rank() + 2}) {
    if (child < mesh->size()) children_.push_back(child);
  }
  if (hooks_.participant != nullptr) make_agreement();
}

bool Replanner::is_root() const { return mesh_->rank() == 0; }
int Replanner::parent() const { return (mesh_->rank() - 1) / 2; }

Replanner::~Replanner() { stop(); }

void Replanner::start(const PlanSet& plans, const PlanBasis& basis) {
  is_started_ = true;
  mark_ns_ = asked_ns_ = mesh_->now_ns();
  if (hooks_.wanted_ns) wanted_ns_ = hooks_.wanted_ns();
  if (!is_root() || !is_on()) return;
  rates_.emplace(basis.fabric, basis.is_nominal);
  hysteresis_.emplace(basis.fabric);
  basis.complete(&options_.plan);
  trials_.set_message_ns(basis.message_ns);
  // Rates that were not measured mean nothing in Mbit/s.
  slow_.emplace(basis.is_nominal ? 0 : options_.least_kbps, mesh_->size());
  plans_ = std::make_shared<const PlanSet>(plans);
  if (engine_->generations() == 1) ended_in_ = engine_->generation();
  counted_ = hooks_.count();
  can_predict_ = !basis.is_nominal;
  has_seen_pairs_ = basis.has_seen_pairs;
  if (can_predict_) {
    const auto expected = std::make_shared<double>(0);
    (void)background_->run(
        [expected, fabric = basis.fabric, plans = plans_, bytes = options_.planned_bytes,
         message_ns = basis.message_ns] {
          *expected = predict(fabric, *plans, bytes, message_ns).time_us;
        },
        [this, expected] { expected_us_ = planned_us_ = first_us_ = *expected; });
    find_latency(basis.fabric);
  }
  tell_network(basis);
}

// What the plan in force takes however little is summed: by the model, of two sizes. Sums are often
// smaller than planned_bytes.
void Replanner::find_latency(const Fabric& fabric) {
  const auto latency_us = std::make_shared<double>(0);
  latency_us_ = 0;
  (void)background_->run(
      [latency_us, fabric, plans = plans_, bytes = options_.planned_bytes,
       message_ns = options_.plan.message_ns] {
        const double whole_us = predict(fabric, *plans, bytes, message_ns).time_us;
        *latency_us = 2 * predict(fabric, *plans, bytes / 2, message_ns).time_us - whole_us;
      },
      [this, latency_us] { latency_us_ = std::max(0.0, *latency_us); });
}

void Replanner::stop() {
  is_over_ = true;
  if (sync_) sync_->stop();
  sampler_.stop();
}

void Replanner::departed(int peer) {
  has_node_left_ = true;
  if (!is_on()) return;
  switch_.departed(peer);
  if (sync_) sync_->departed(peer);
}

// Each node has to know which others are behind a limited uplink and how fast its own link is.
void Replanner::tell_network(const PlanBasis& basis) {
  const Fabric& fabric = basis.fabric;
  const bool has_uplinks =
      std::any_of(fabric.racks.begin(), fabric.racks.end(),
                  [](const RackLink& r) { return r.up_kbps > 0 || r.down_kbps > 0; });
  if (basis.is_nominal && !has_uplinks) return;
  ByteWriter w;
  for (const NodeLink& node : fabric.nodes) {
    w.number(has_uplinks ? static_cast<std::uint64_t>(node.rack) : 0);
    w.number(basis.is_nominal ? 0 : static_cast<std::uint64_t>(node.out_kbps));
    w.number(basis.is_nominal ? 0 : static_cast<std::uint64_t>(node.in_kbps));
  }
  (void)take_network(w.take());
}

Status Replanner::take_network(const std::vector<std::uint8_t>& message) {
  struct Node {
    std::uint64_t rack, out_kbps, in_kbps;
  };
  ByteReader reader(message);
  std::vector<Node> nodes(mesh_->size());
  for (Node& node : nodes) {
    node.rack = reader.number();
    node.out_kbps = reader.number();
    node.in_kbps = reader.number();
  }
  if (!reader.is_complete()) return remote_error("mangled message about the network");
  const Node& own = nodes[mesh_->rank()];
  std::vector<bool> is_far(mesh_->size());
  for (int peer = 0; peer < mesh_->size(); ++peer) is_far[peer] = nodes[peer].rack != own.rack;
  sampler_.set_network(std::move(is_far), own.out_kbps, own.in_kbps);
  for (const int child : children_) channel_->send(child, FrameType::kControl, kNetwork, message);
  return Status::ok();
}

void Replanner::operation_posted() {
  if (!is_on()) return;
  sampler_.wake();
  if (!is_root() || is_gathering_ || is_planning_ || switch_.is_running() || has_node_left_) return;
  if (sync_ && sync_->is_running()) return;
  if (trials_.is_running() && engine_->generations() > 1) return;  // the former plan still runs
  const std::uint64_t count = hooks_.count();
  // Each trial of a slow plan costs time, as does the look that decides whether there is one.
  const bool is_hurried = trials_.is_running() || (trials_.is_suspicious() && !sync_);
  const std::uint64_t enough =
      is_hurried ? std::min(kTrialCollectives, options_.collectives) : options_.collectives;
  if (count - counted_ < enough) return;
  if (mesh_->now_ns() - asked_ns_ < options_.shortest_ns) return;
  counted_ = count;
  ask();
}

// ----------------------------------------------------------------------------------------- node 0

void Replanner::measure_pace(const PlanTime& time) {
  const bool has_processor = time.processor < PlanTrials::kNoProcessor;
  const double took_us = time.us_per_byte * static_cast<double>(options_.planned_bytes);
  measured_us_ = has_processor ? took_us : 0;
  if (took_us > 0) is_for_trials_ = time.for_trials().us_per_byte > 0;
  // Without processor, no trial would correct a plan that is wrong from the beginning.
  const bool may_be_wrong = !has_processor && took_us > PlanTrials::kWrong * first_us_;
  if (!trials_.is_running() && !may_be_wrong) pace_.took(took_us, has_processor);
}

void Replanner::learn() {
  round_ns_ = mesh_->now_ns() - asked_ns_;
  std::vector<probe::PassiveReport> reports(mesh_->size());
  for (const NodeRates& r : gathered_) {
    // Where a node waits for its processor, what its links carry says nothing of them.
    if (r.rank >= mesh_->size() || r.processor >= kProcessorOnly) continue;
    reports[r.rank] = r.report;
    reports[r.rank].is_rough = r.others >= kRoughPercent;
  }
  const bool is_of_one_plan = ended_in_ && began_in_ == ended_in_;
  const double expected = expected_us_ / static_cast<double>(options_.planned_bytes);
  const PlanTime taken = plan_time(gathered_).for_bursts_of(options_.planned_bytes, latency_us_);
  PlanTime time = is_of_one_plan ? taken : PlanTime();
  // Predictions are for planned_bytes: what is over sooner is mostly latency.
  const bool is_short = time.burst_bytes * expected < kLeastBurstUs;
  if (is_short || time.is_shared) time.us_per_byte = 0;
  const PlanTime of_prediction = time.for_trials();
  const bool is_quick = of_prediction.us_per_byte > 0 &&
                        time.burst_bytes <= 2 * static_cast<double>(options_.planned_bytes) &&
                        time.us_per_byte < kQuick * expected;
  quick_intervals_ = is_quick ? quick_intervals_ + 1 : 0;
  if (!trials_.is_running()) rates_->update(reports, quick_intervals_ > 0);
  trace(*mesh_, interval_, reports);
  log_trace("of one plan {}: {} for 32 MiB, expected {}; processor {} %", is_of_one_plan,
            in_seconds(taken.us_per_byte * static_cast<double>(options_.planned_bytes)),
            in_seconds(expected_us_), taken.processor);
  measure_pace(time);
  const Fabric live = believed();
  ReplanEvent e = event(ReplanEvent::Kind::kReport);
  if (!trials_.is_running()) look_for_slow(rates_->fabric(), reports);
  e.reports = std::move(reports);
  tell(e);
  const bool has_groups = !plans_->relaxed.is_empty() || is_same_on_all_nodes(options_.mode);
  if (sync_) sync_->interval_ended(round_ns_, has_groups);
  if (trials_.is_running()) return trial_interval_ended(taken.for_trials(), is_of_one_plan);
  is_news_ = hysteresis_->interval_ended(live);
  if (has_node_left_) return;
  const double first = first_us_ / static_cast<double>(options_.planned_bytes);
  const bool is_one_slow = slow_nodes(rates_->fabric()) == 1;
  // Connections are new in the first interval: it is no reason for doubt.
  const PlanTime for_trials = interval_ > 1 ? of_prediction : PlanTime();
  if (may_try() && trials_.is_due(for_trials, expected, first, !trusts_model_, is_one_slow)) {
    if (trusts_model_) return begin_trials(of_prediction);
    trusts_model_ = true;  // the network is another one: what is believed of it now may be right
  }
  if (proof_.is_refuted(measured_us_)) return go_back();
  // One slow node is the simpler explanation: its plan comes first, racks if that does not help.
  const bool is_explained = is_one_slow && is_news_;
  const bool takes_longer = of_prediction.us_per_byte > PlanTrials::kLag * expected;
  if (takes_longer && !is_explained && looks_at_pairs() && !pairs().empty()) {
    return look_at_pairs(of_prediction);
  }
  if (looks_at_others()) return look_at_others(of_prediction);
  follow(live);
}

ReplanEvent Replanner::event(ReplanEvent::Kind kind) const {
  ReplanEvent e;
  e.kind = kind;
  e.interval = interval_;
  e.collectives = counted_;
  e.time_ns = mesh_->now_ns();
  e.fabric = rates_->fabric();
  e.is_nominal = !can_predict_;
  return e;
}

void Replanner::tell(const ReplanEvent& event) const {
  if (hooks_.observer != nullptr) hooks_.observer->on_replan(event);
}

}  // namespace riffle
