// Replanning: the plan follows the network while the job runs.
//
// Every node measures its own link from the traffic (topology/probe/passive.h). After a number of
// collectives node 0 asks down the tree of connect (parent of r: (r-1)/2), reports come up, some
// dozens of bytes per node, and node 0 knows what the network can do now (live_rates.h). If another
// plan is worth it (topology/plan/replan.h), all nodes change to it together (plan_switch.h). If
// all-reduces take longer than before the change, the former plan comes back (change_proof.h), and
// if they take longer than that network explains, plans are tried (plan_trials.h). Only node 0
// counts; no collective waits for any of this. Where a relaxed mode is wanted, the same reports
// carry what it takes to agree on it (sync_agreement.h).
//
// Threads: the mesh's owner; planning and making generations happen in the Background.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/collective/adapt/change_proof.h"
#include "plugin/collective/adapt/link_sampler.h"
#include "plugin/collective/adapt/pace.h"
#include "plugin/collective/adapt/plan_switch.h"
#include "plugin/collective/adapt/plan_trials.h"
#include "plugin/collective/adapt/rate_reports.h"
#include "plugin/collective/adapt/replan_event.h"
#include "plugin/collective/adapt/slow_nodes.h"
#include "plugin/collective/adapt/sync_agreement.h"
#include "plugin/collective/base/background.h"
#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/base/plan_basis.h"
#include "plugin/collective/threads/threaded_engine.h"
#include "plugin/transport/base/timer_service.h"
#include "topology/plan/replan.h"
#include "topology/probe/live_rates.h"

namespace riffle {

struct ReplanOptions {
  std::uint64_t collectives = 0;  // per replanning interval; 0: never
  std::uint64_t shortest_ns = 250'000'000;
  std::uint64_t planned_bytes = 32u << 20;  // the size that plans are compared at
  PlanOptions plan;
  // A change of the plan begins this much ahead, besides what the messages for it take, so that no
  // node has to wait for it: chunks that may start at once (a whole large operation), and a time.
  // Tests ask for less.
  std::uint64_t burst_chunks = 64;
  std::uint64_t least_horizon_ns = 50'000'000;
  // The relaxed mode that is wanted, and after how many steps.
  SyncMode mode = SyncMode::kExact;
  std::uint64_t warmup_steps = 10;
  // Nodes that stay below it for SlowNodes::kIntervals are too slow; 0: none is.
  std::int64_t least_kbps = 0;
  // The network is as connect was told: no plan is tried that it does not suggest.
  bool trusts_fabric = false;
};

// A node that has been too slow, and what it carries now.
struct SlowNode {
  int node = 0;
  std::int64_t kbps = 0;
  int intervals = 0;  // in a row
};

struct ReplanHooks {
  // Collectives so far. Node 0.
  std::function<std::uint64_t()> count;
  ReplanObserver* observer = nullptr;  // node 0; may be null
  // Every node: for how long the mesh's own thread, which calls it first, has run or waited for a
  // processor. Null: unknown.
  std::function<std::uint64_t()> wanted_ns;
  // Every node: its calls, where a relaxed mode is wanted; must outlive the replanning intervals.
  // Null: none is.
  ModeParticipant* participant = nullptr;
  // Node 0, any thread: what the relaxed modes run over on a fabric, and whether a line is to tell
  // of it. Null: they keep what they have.
  std::function<RelaxedPlans(const Fabric&, bool is_told)> relaxed_plans;
  // Node 0, any thread: what a relaxed step over these, which are not empty, takes on a fabric.
  // Null: the groups change with the exact plan alone, and no change waits as a way back.
  std::function<double(const Fabric&, const RelaxedPlans&)> step_us;
  // Node 0 (where nodes may be lost: every node), where the sparse mode is wanted: how it should
  // run for the calls that `participant` knows, on this fabric and beside these exact plans. An
  // error: better not, and why.
  std::function<Result<SparseOrder>(const Fabric&, const PlanSet&)> sparse_order;
  // Node 0: all that are too slow, in ascending order; in every replanning interval while it lasts.
  // Must not end the replanning intervals at once. Null: nothing follows from it.
  std::function<void(const std::vector<SlowNode>&)> too_slow;
};

class Replanner {
 public:
  static constexpr std::uint32_t kAsk = 30, kRates = 31, kNetwork = 32;
  bool is_mine(std::uint32_t kind) const {
    return (kind >= kAsk && kind <= kNetwork) || switch_.is_mine(kind) ||
           (sync_ && sync_->is_mine(kind));
  }

  // All of them must outlive this; `background` may be null only if options.collectives is 0.
  Replanner(Mesh* mesh, ControlChannel* channel, ThreadedEngine* engine, TimerService* timers,
            Background* background, ReplanOptions options, ReplanHooks hooks);
  ~Replanner();

  // Connect is over; node 0 gives what it planned on.
  void start(const PlanSet& plans, const PlanBasis& basis);
  // An operation was posted here.
  void operation_posted();
  Status received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message);
  void departed(int peer);
  // On another plan, or on a mode; this node may have promised something.
  bool is_agreeing() const { return switch_.is_running() || (sync_ && sync_->is_running()); }
  // The job makes no more calls.
  void job_ended() {
    if (sync_) sync_->job_ended();
  }
  // The end: no timer, no change any more.
  void stop();

 private:
  bool is_root() const;
  int parent() const;
  bool is_on() const { return is_started_ && !is_over_ && options_.collectives > 0; }

  void tell_network(const PlanBasis& basis);
  Status take_network(const std::vector<std::uint8_t>& message);
  void ask();
  void begin_gathering(std::uint64_t interval, bool with_pairs);
  void pass_on_if_complete();
  void learn();
  void measure_pace(const PlanTime& time);
  int slow_nodes(const Fabric& live) const;
  Fabric believed() const;
  void find_latency(const Fabric& fabric);
  void follow(const Fabric& live);
  void look_for_slow(const Fabric& live, const std::vector<probe::PassiveReport>& reports);
  void decide_on(const std::shared_ptr<Weighed>& weighed);
  void change_to(const Weighed& weighed, std::uint64_t horizon_ns);
  std::uint64_t horizon_ns() const;
  void go_back();
  // Trials of plans on real all-reduces (plan_trials.h).
  bool may_try() const;
  void plan_trials(double us_per_byte, std::function<void(std::vector<Weighed>)> then);
  void begin_trials(const PlanTime& time);
  void begin_trials(const PlanTime& time, std::vector<Weighed> candidates,
                    double gain = PlanTrials::kGain);
  void trial_interval_ended(const PlanTime& time, bool is_of_one_plan);
  void try_next();
  void end_trials();
  PairTimes pairs() const;
  bool looks_at_pairs() const;
  void look_at_pairs(const PlanTime& time);
  bool looks_at_others() const;
  void look_at_others(const PlanTime& time);
  void prepare(const PlanSwitch::Order& order, const std::function<void(Status)>& prepared);
  std::uint64_t hold(std::uint64_t horizon_ns);
  void decided(const Result<std::uint64_t>& first_seq);
  ReplanEvent event(ReplanEvent::Kind kind) const;
  void tell(const ReplanEvent& event) const;
  void make_agreement();
  std::uint64_t relaxed_chunk_bytes() const;
  void mode_changed(const ModeChange& change);

  Mesh* const mesh_;
  ControlChannel* const channel_;
  ThreadedEngine* const engine_;
  TimerService* const timers_;
  Background* const background_;
  ReplanOptions options_;
  const ReplanHooks hooks_;
  bool is_started_ = false, is_over_ = false;
  std::vector<int> children_;
  PlanSwitch switch_;
  std::unique_ptr<SyncAgreement> sync_;  // null: no relaxed mode is wanted

  LinkSampler sampler_;
  // Since the last question.
  Busy busy_;
  std::uint64_t wanted_ns_ = 0;
  std::vector<LinkActivity> activity_;  // by peer
  // The speed at which chunks start, since the last question.
  std::uint64_t mark_seq_ = 0, mark_ns_ = 0;
  double chunks_per_ns_ = 0;
  std::uint64_t holds_seen_ = 0;
  double caution_ = 1;
  bool is_far_ahead_ = true;  // the last change began with a horizon

  // Gathering.
  std::uint64_t interval_ = 0;
  bool is_gathering_ = false;
  std::size_t children_missing_ = 0;
  std::vector<NodeRates> gathered_;
  NodeRates own_report(bool with_pairs);

  // Node 0.
  std::optional<probe::LiveRates> rates_;
  std::optional<Hysteresis> hysteresis_;
  std::optional<SlowNodes> slow_;
  std::shared_ptr<const PlanSet> plans_;  // current
  std::uint64_t counted_ = 0, asked_ns_ = 0, round_ns_ = 0, planning_ns_ = 0;
  bool is_planning_ = false;
  bool is_news_ = false;              // the current plan was made for other rates
  std::shared_ptr<Weighed> weighed_;  // the last one
  // Predicted for the current plan on what is believed, or measured where that was wrong; 0: not.
  double expected_us_ = 0;       // for planned_bytes
  double planned_us_ = 0;        // ... on the rates that it was made for
  double measured_us_ = 0;       // likewise, in the last interval; 0: not
  bool is_for_trials_ = true;    // the last one measured says whether predictions are right
  double first_us_ = 0;          // ... when what connect knew was last believed
  double latency_us_ = 0;        // of the current plan, by the model; 0: not known
  int quick_intervals_ = 0;      // in a row, in which all-reduces took less
  bool can_predict_ = false;     // rates were measured or given
  bool has_seen_pairs_ = false;  // PlanBasis, as long as its fabric is the base
  bool trusts_model_ = true;
  int looks_at_pairs_ = 0, looks_at_others_ = 0;  // so far
  std::vector<Fabric> tried_racks_;               // for what the pairs showed
  // The generation alone in force when the last interval began, if only one was; and when it ended.
  std::optional<std::uint64_t> began_in_, ended_in_;
  PlanTrials trials_;
  ChangeProof proof_;
  Pace pace_;  // of planned_bytes
  bool is_going_back_ = false;
  bool has_node_left_ = false;
};

}  // namespace riffle
