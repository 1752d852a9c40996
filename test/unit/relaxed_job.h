// A job on eight nodes in one process, whose all-reduces go through RelaxedCalls and whose sessions
// agree on modes, on a network that reorders every frame; and what the calls should have given,
// step by step in double precision.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plugin/collective/relaxed_calls.h"
#include "plugin/collective/session.h"
#include "plugin/transport/memory/memory_network.h"
#include "test/manual_clock.h"
#include "test/unit/shadow_reference.h"
#include "topology/plan/planner.h"

namespace riffle::testing {

inline constexpr int kNodes = 8;
inline constexpr std::size_t kChunkBytes = 6144;

// A 4 x 2 grid: rows and columns in turn, the second lane one step ahead.
inline RelaxedPlans grid_plans() {
  const Share all = kShareUnits, half = kShareUnits / 2, quarter = kShareUnits / 4;
  const auto pair = [&](int a, int b) { return Group{Pattern::kDirect, {a, b}, {0, half, all}}; };
  const auto four = [&](int a, int b, int c, int d) {
    return Group{Pattern::kDirect, {a, b, c, d}, {0, quarter, half, half + quarter, all}};
  };
  RelaxedPlans r;
  r.steps = 2;
  r.lanes = 2;
  r.partitions = {{kNodes, {{{four(0, 2, 4, 6), four(1, 3, 5, 7)}}}},
                  {kNodes, {{{pair(0, 1), pair(2, 3), pair(4, 5), pair(6, 7)}}}}};
  r.table = {0, 1, 1, 0};
  return r;
}

struct JobCall {  // of one step
  std::uint32_t bucket = 0;
  std::uint64_t first = 0, valid = 0, total = 0, count = 0;
};

class RelaxedJob {
 public:
  struct Options {
    std::uint64_t seed = 1;
    SyncSettings settings{.mode = SyncMode::kDsSync,
                          .full_every = 7,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096};
    std::vector<JobCall> calls = {{0, 0, 5000, 5000, 5000},
                                  {1, 0, 2500, 4400, 2500},
                                  {1, 2500, 1900, 4400, 2500},  // the rest is stale
                                  {2, 0, 100, 100, 100},        // no large sum: exact
                                  {3, 0, 2048, 2048, 2048}};
    std::uint64_t epoch = 4;
    std::uint32_t chunk_bytes = 0;  // of the relaxed plans
  };

  RelaxedJob() : RelaxedJob(defaults()) {}
  explicit RelaxedJob(const Options& options)
      : options_(options), random_(options_.seed), network_(kNodes, options_.seed) {
    plans_ = plan(even_fabric(kNodes, 400'000), 32 << 20, {})->plans;
    plans_.relaxed = grid_plans();
    plans_.relaxed.chunk_bytes = options_.chunk_bytes;
    for (int r = 0; r < kNodes; ++r) nodes_.push_back(make_node(r));
    for (int r = 0; r < kNodes; ++r) {
      NodeReport report;
      report.rank = r;
      nodes_[r]->session->start(&nodes_[r]->mesh, report);
    }
    while (connected_ < kNodes && network_.step()) {
    }
  }
  ~RelaxedJob() {
    for (auto& node : nodes_) node->session->end();
  }

  // Runs so many steps of the job; the first wrong thing, or empty.
  std::string run(int steps) {
    const std::uint64_t last = steps_begun_ + static_cast<std::uint64_t>(steps);
    steps_begun_ = last;
    for (std::uint64_t idle = 0; idle < 20000;) {
      bool all_done = true;
      for (int r = 0; r < kNodes; ++r) {
        if (std::string e = take_results(r); !e.empty()) return e;
        Node& n = *nodes_[r];
        if (n.step == last && n.running.empty()) continue;
        all_done = false;
        if (n.step < last && n.running.size() < 4 && random_() % 8 == 0) post(r);
      }
      if (!failure.empty()) return failure;
      if (all_done) return check();
      idle = network_.step() ? 0 : idle + 1;
      clock_.advance(200'000);
    }
    return "nothing moves";
  }

  // The calls of a later step may be others.
  void change_calls(std::vector<JobCall> calls) {
    calls_before_ += (steps_begun_ - changed_in_) * options_.calls.size();
    changed_in_ = steps_begun_;
    options_.calls = std::move(calls);
  }
  // Other buckets, all of them, in calls of the same shapes: what runs is not of one mind with it.
  void move_buckets(std::vector<JobCall> calls) {
    change_calls(std::move(calls));
    are_buckets_moved_ = true;
  }
  SyncReport report(int r) { return nodes_[r]->calls->report(); }
  const RelaxedCounts& counts(int r) const { return nodes_[r]->calls->counts(); }
  RelaxedTotals totals(int r) const { return nodes_[r]->calls->totals(); }
  std::uint64_t relaxed_elements() const { return relaxed_elements_; }
  std::uint64_t steps() const { return steps_begun_; }
  RelaxedRun* relaxed_run(int r) { return nodes_[r]->calls->run(); }
  double most_apart() const { return most_apart_; }    // the largest variance between nodes
  double worst_error() const { return worst_error_; }  // against the reference, relative

  // Faults: calls (node, step, call of the step) whose identity is lost, or that hold no number.
  std::set<std::tuple<int, std::uint64_t, std::size_t>> lost, not_finite;
  std::set<int> without_profiler;
  // Where the plan of the moment has one group of all nodes, by step of the mode and lane.
  std::function<bool(std::uint64_t step, std::uint64_t lane)> meets_all;
  std::vector<ModeChange> changes;
  std::string failure;

 private:
  static const Options& defaults() {
    static const Options options;
    return options;
  }

  class Watcher final : public EpochObserver {
   public:
    explicit Watcher(std::vector<ModeChange>* changes) : changes_(changes) {}
    void on_epoch(const EpochEvent& e) override {
      if (e.kind == EpochEvent::Kind::kMode) {
        changes_->push_back({sync_mode_of(e.mode), e.first_seq, e.cause});
      }
    }

   private:
    std::vector<ModeChange>* changes_;
  };
  struct Running {
    std::uint64_t step = 0;
    std::size_t index = 0;
    StagedCall staged;
    bool is_staged = false;
    std::unique_ptr<Operation> exact;
    std::vector<float> data;  // in place
  };
  struct Node {
    Node(Mesh& inner, const ManualClock& clock) : mesh(inner, clock) {}
    ClockMesh mesh;
    InlineBackground background;
    std::unique_ptr<RelaxedCalls> calls;
    std::unique_ptr<Session> session;
    std::uint64_t step = 0;  // the next call to post
    std::size_t index = 0;
    CallIdentity identity;
    std::unique_ptr<Running> next;  // being offered
    std::vector<std::unique_ptr<Running>> running;
  };
  // One call on all nodes, kept until every node is done.
  struct Outcome {
    JobCall call;
    int done = 0;
    int staged = 0;
    std::vector<std::vector<float>> input{kNodes}, output{kNodes};
    std::vector<bool> took_part = std::vector<bool>(kNodes, true);
    std::vector<bool> brings = std::vector<bool>(kNodes, false);  // a background round's result
  };

  std::unique_ptr<Node> make_node(int r) {
    auto node = std::make_unique<Node>(network_.mesh(r), clock_);
    Node* n = node.get();
    SessionOptions o;
    o.engine.piece_bytes = 256;
    o.engine.chunk_bytes = kChunkBytes;
    o.engine.max_operations = 64 + 2 * RelaxedRun::kMaxSegments;
    o.epochs.collectives = options_.epoch;
    o.epochs.shortest_ns = 0;
    o.epochs.burst_chunks = 4;
    o.epochs.least_horizon_ns = 1'000'000;
    o.epochs.mode = options_.settings.mode;
    o.epochs.warmup_steps = options_.settings.warmup_steps;
    o.background = &node->background;
    RelaxedOptions relaxed;
    relaxed.settings = options_.settings;
    relaxed.layout.min_bytes = 256;
    relaxed.size = kNodes;
    relaxed.chunk_bytes = o.engine.chunk_bytes;
    node->calls = std::make_unique<RelaxedCalls>(
        relaxed, RelaxedCalls::Hooks{[n](const CallShape&) { return n->identity; },
                                     [this, n](Operation* op) {
                                       if (is_over_all(op->step, op->lane)) {
                                         op->step = Operation::kExact;
                                       }
                                       n->session->submit(op);
                                     }});
    SessionHooks hooks;
    hooks.decide = [this](const std::vector<NodeReport>&) {
      Verdict v;
      v.plans = encode(plans_);
      v.digest = digest(plans_);
      return v;
    };
    hooks.basis = [] { return PlanBasis{even_fabric(kNodes, 400'000), false}; };
    hooks.epochs.count = [this] { return nodes_[0]->step; };
    hooks.epochs.observer = r == 0 ? &watcher_ : nullptr;
    hooks.epochs.party = node->calls.get();
    hooks.connected = [this](const Status& s, const std::string&) { connected_ += s.is_ok(); };
    hooks.failed = [this](const std::string& why) { failure = why; };
    node->session = std::make_unique<Session>(r, kNodes, o, &clock_, std::move(hooks));
    network_.set_sink(r, node->session->sink());
    return node;
  }

  // The same on every node, but for the fault's node.
  CallIdentity identity_of(int r, std::uint64_t step, std::size_t index) const {
    const JobCall& c = options_.calls[index];
    CallIdentity id;
    if (without_profiler.contains(r) || lost.contains({r, step, index})) {
      id.why_not = "events were lost";
      return id;
    }
    id.is_sure = true;
    id.comm_id = 77;
    id.bucket = step * 100 + c.bucket;
    id.buffer = id.output = reinterpret_cast<const void*>(std::uintptr_t{4096} * (c.bucket + 1));
    id.first_element = c.first;
    id.valid_elements = c.valid;
    id.total_elements = c.total;
    id.is_last = c.first + c.valid == c.total;
    return id;
  }

  std::vector<float> input_of(int r, std::uint64_t step, std::size_t index) const {
    const JobCall& c = options_.calls[index];
    std::vector<float> data(c.count);
    std::mt19937 values(
        static_cast<unsigned>(step * 1000003 + index * 101 + static_cast<std::uint64_t>(r)));
    for (float& x : data) x = static_cast<float>(values()) * 0x1p-30F - 1.8F;  // mean 0.2
    if (not_finite.contains({r, step, index})) {
      data[c.valid / 2] = std::numeric_limits<float>::infinity();
    }
    return data;
  }

  void post(int r) {
    Node& n = *nodes_[r];
    if (!n.next) {  // else it was refused before
      n.next = std::make_unique<Running>();
      n.next->step = n.step;
      n.next->index = n.index;
      n.next->data = input_of(r, n.step, n.index);
    }
    std::unique_ptr<Running>& run = n.next;
    const JobCall& c = options_.calls[n.index];
    Outcome& outcome = outcomes_[{n.step, n.index}];
    outcome.call = c;
    n.identity = identity_of(r, n.step, n.index);
    const CallShape shape{1,
                          run->data.data(),
                          run->data.data(),
                          c.count,
                          static_cast<int>(DataType::kFloat32),
                          static_cast<int>(ReduceOp::kSum)};
    outcome.input[r] = run->data;
    const std::uint64_t corrections = n.calls->counts().corrections;
    const RelaxedCalls::Answer answer = n.calls->all_reduce(shape, &run->staged);
    if (answer == RelaxedCalls::Answer::kBusy) return;
    outcome.brings[r] = n.calls->counts().corrections > corrections;
    outcome.took_part[r] = n.identity.is_sure;
    run->is_staged = answer == RelaxedCalls::Answer::kStaged;
    outcome.staged += run->is_staged;
    if (!run->is_staged) {
      run->exact = std::make_unique<Operation>();
      Operation& o = *run->exact;
      o.count = c.count;
      o.send = o.recv = reinterpret_cast<std::byte*>(run->data.data());
      o.state = Operation::State::kRunning;
      n.session->submit(&o);
    }
    n.running.push_back(std::move(run));
    if (++n.index == options_.calls.size()) {
      n.index = 0;
      ++n.step;
    }
  }

  std::string take_results(int r) {
    Node& n = *nodes_[r];
    for (std::size_t i = 0; i < n.running.size();) {
      Running& run = *n.running[i];
      bool is_done = false;
      if (run.is_staged) {
        const Result<bool> tested = n.calls->test(&run.staged);
        if (!tested) return tested.status().message();
        is_done = *tested;
      } else {
        is_done = run.exact->state == Operation::State::kDone;
      }
      if (!is_done) {
        ++i;
        continue;
      }
      Outcome& outcome = outcomes_[{run.step, run.index}];
      outcome.output[r] = std::move(run.data);
      ++outcome.done;
      n.running.erase(n.running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return "";
  }

  bool is_over_all(std::int64_t step, std::uint64_t lane) const {
    return step != Operation::kExact && meets_all &&
           meets_all(static_cast<std::uint64_t>(step), lane);
  }

  // Whom node r averages with, in this relaxed step and lane.
  static std::vector<int> group_of(const RelaxedPlans& plans, std::uint64_t step,
                                   std::uint64_t lane, int r) {
    for (const Group& g : plans.partitions[plans.index(step, lane)].levels[0].groups) {
      for (const int m : g.members) {
        if (m == r) return g.members;
      }
    }
    return {r};
  }

  // All outcomes so far against the rules, in order.
  std::string check() {
    for (const auto& [key, outcome] : outcomes_) {
      const auto& [step, index] = key;
      const std::string where =
          " in step " + std::to_string(step) + ", call " + std::to_string(index);
      if (outcome.done != kNodes) return "not over everywhere" + where;
      if (outcome.staged != 0 && outcome.staged != kNodes) return "not all alike" + where;
      // A mode begins with the first call that is staged, wherever in the job's step that is. (A
      // call that is no large sum is never staged.)
      const std::uint64_t number =
          calls_before_ + (step - changed_in_) * options_.calls.size() + index;
      const bool is_relaxed = outcome.staged > 0;
      if (is_relaxed && !first_call_) {
        first_call_ = number;
        mode_calls_ = options_.calls;
        state_.clear();
        asked_.clear();
        shadow_.clear();
      }
      if (!is_relaxed && is_large(outcome.call)) first_call_.reset();
      std::string e;
      if (!is_relaxed) {
        e = check_exact(outcome);
      } else if (are_buckets_moved_) {
        e = check_passed_on(outcome);
      } else if (follows_other_rules()) {
        e = check_moved(outcome, number - *first_call_, index);
        if (e.empty() && options_.settings.mode == SyncMode::kShadowSync && !has_faults()) {
          e = check_shadow(outcome, number - *first_call_, index);
        }
      } else {
        e = check_relaxed(outcome, number - *first_call_, index);
      }
      if (!e.empty()) return e + where;
    }
    outcomes_.clear();
    return "";
  }

  static std::string check_exact(const Outcome& o) {
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      double sum = 0, magnitude = 0;
      for (int r = 0; r < kNodes; ++r) {
        sum += static_cast<double>(o.input[r][e]);
        magnitude += std::fabs(static_cast<double>(o.input[r][e]));
      }
      for (int r = 0; r < kNodes; ++r) {
        if (std::isfinite(magnitude) && !(std::fabs(o.output[r][e] - sum) <= 1e-6 * magnitude)) {
          return "no exact sum at element " + std::to_string(e);
        }
        if (std::memcmp(&o.output[r][e], &o.output[0][e], sizeof(float)) != 0) return "other bits";
      }
    }
    return "";
  }

  std::string check_passed_on(const Outcome& o) {
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      ++relaxed_elements_;
      for (int r = 0; r < kNodes; ++r) {
        if (o.output[r][e] != kNodes * o.input[r][e]) {
          return "element " + std::to_string(e) + " on node " + std::to_string(r) +
                 " is not the node's own";
        }
      }
    }
    return "";
  }

  // The step that an order to end the mode made its last one.
  std::uint64_t last_step() const {
    for (const ModeChange& c : changes) {
      if (c.mode != SyncMode::kExact || c.first_call < *first_call_) continue;
      return (c.first_call - *first_call_ + mode_calls_.size() - 1) / mode_calls_.size();
    }
    return ~0ull;
  }
  bool is_large(const JobCall& c) const { return c.total * 4 >= options_.settings.min_bytes; }

  // Elements of all segments but the last: even ones on cache lines.
  std::uint64_t segment_of(std::uint64_t valid) const {
    const std::uint64_t room = kChunkBytes / 4 / 16 * 16 - 16;  // the trailer needs 9
    const std::uint64_t most = options_.chunk_bytes == 0 ? room : options_.chunk_bytes / 64 * 16;
    const std::uint64_t segments = (valid + most - 1) / most;
    return ((valid + segments - 1) / segments + 15) / 16 * 16;
  }

  // Of these the rules have tests of their own; here it counts that no contribution is lost, and
  // that a step over all nodes brings them together.
  bool follows_other_rules() const {
    return options_.settings.mode == SyncMode::kShadowSync || options_.settings.momentum > 0;
  }
  std::string check_moved(const Outcome& o, std::uint64_t since, std::size_t index) {
    const std::uint64_t step = since / mode_calls_.size();
    const std::uint64_t every = options_.settings.full_every;
    const bool is_full = step == last_step() || (every > 0 && step % every == every - 1);
    const bool has_momentum = options_.settings.momentum > 0;
    auto& moved = state_[index];
    auto& asked = asked_[index];
    if (moved.empty()) {
      moved.assign(kNodes, std::vector<double>(o.call.valid, 0));
      asked.assign(o.call.valid, 0);
    }
    double apart = 0;
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      ++relaxed_elements_;
      double mean = 0;
      for (int r = 0; r < kNodes; ++r) {
        moved[r][e] += static_cast<double>(o.output[r][e]) / kNodes;
        asked[e] += static_cast<double>(o.input[r][e]) / kNodes;
        mean += moved[r][e] / kNodes;
      }
      const double tolerance = 1e-4 * (1 + std::fabs(asked[e]));
      for (int r = 0; r < kNodes; ++r) {
        const double d = moved[r][e] - mean;
        apart += d * d / kNodes / static_cast<double>(o.call.valid);
        if (is_full && !has_momentum && keeps_the_mean() &&
            !(std::fabs(moved[r][e] - asked[e]) <= tolerance)) {
          return "after a step over all nodes node " + std::to_string(r) + " moved by " +
                 std::to_string(moved[r][e]) + " instead of " + std::to_string(asked[e]);
        }
      }
      if (has_momentum && !(std::fabs(mean - asked[e]) <= tolerance)) return "the mean is not kept";
    }
    most_apart_ = std::max(most_apart_, apart);
    return "";
  }

  bool has_faults() const { return !lost.empty() || !not_finite.empty(); }
  bool keeps_the_mean() const {
    return options_.settings.mode != SyncMode::kShadowSync ||
           !has_pull(options_.settings.shadow.variant);
  }
  // The first lane of a call whose place is `since` calls after the mode's beginning.
  std::uint64_t first_lane(std::uint64_t since, std::size_t index) const {
    const std::size_t period = mode_calls_.size();
    std::uint64_t lane = 0;
    for (std::size_t i = 0; i < since % period; ++i) {
      const JobCall& c = mode_calls_[(index + period - since % period + i) % period];
      if (is_large(c)) lane += (c.valid + segment_of(c.valid) - 1) / segment_of(c.valid);
    }
    return lane;
  }

  std::string check_shadow(const Outcome& o, std::uint64_t since, std::size_t index) {
    const std::uint64_t step = since / mode_calls_.size();
    const std::uint64_t every = options_.settings.full_every;
    auto& reference = shadow_[index];
    if (!reference) {
      reference.emplace(
          options_.settings.shadow, kNodes, o.call.valid, segment_of(o.call.valid),
          [lane = first_lane(since, index)](std::uint64_t round, std::uint64_t segment, int r) {
            return group_of(grid_plans(), round, lane + segment, r);
          });
    }
    ShadowReference::Call call{&o.input, &o.output, o.brings};
    call.is_full = step == last_step() || (every > 0 && step % every == every - 1);
    call.begins_round = !call.is_full && step % options_.settings.shadow_steps == 0;
    call.round = step / options_.settings.shadow_steps;
    std::string e = reference->check(call);
    worst_error_ = std::max(worst_error_, reference->worst_error());
    return e;
  }

  // `since`: calls since the mode began.
  std::string check_relaxed(const Outcome& o, std::uint64_t since, std::size_t index) {
    const std::size_t period = mode_calls_.size();
    const std::uint64_t step = since / period;
    auto& state = state_[index];
    if (state.empty()) state.assign(kNodes, std::vector<double>(o.call.valid, 0));
    const std::uint64_t every = options_.settings.full_every;
    const bool is_full = step == last_step() || (every > 0 && step % every == every - 1);
    std::uint64_t lane = first_lane(since, index);
    const std::uint64_t segment = segment_of(o.call.valid);
    for (std::uint64_t begin = 0; begin < o.call.valid; begin += segment, ++lane) {
      const std::uint64_t end = std::min(begin + segment, o.call.valid);
      std::array<bool, kNodes> is_finite{};
      std::array<std::vector<int>, kNodes> group;
      for (int r = 0; r < kNodes; ++r) {
        is_finite[r] = std::all_of(&o.input[r][begin], &o.input[r][begin] + (end - begin),
                                   [](float x) { return std::isfinite(x); });
        group[r] = group_of(grid_plans(), step, lane, r);
        if (is_full || is_over_all(static_cast<std::int64_t>(step), lane)) {
          group[r] = {0, 1, 2, 3, 4, 5, 6, 7};
        }
      }
      for (std::uint64_t e = begin; e < end; ++e) {
        if (std::string wrong = check_element(o, e, group, is_finite, &state); !wrong.empty()) {
          return "element " + std::to_string(e) + ": " + wrong;
        }
      }
    }
    return "";
  }

  std::string check_element(const Outcome& o, std::uint64_t e,
                            const std::array<std::vector<int>, kNodes>& group,
                            const std::array<bool, kNodes>& is_finite,
                            std::vector<std::vector<double>>* state) {
    ++relaxed_elements_;
    double in = 0, out = 0, magnitude = 0;
    std::array<double, kNodes> next{};
    bool all_finite = true;
    for (int r = 0; r < kNodes; ++r) {
      const double y = (*state)[r][e], g = static_cast<double>(o.input[r][e]);
      const float got = o.output[r][e];
      double sum = 0;
      int members = 0;
      bool group_is_finite = true;
      for (const int m : group[r]) {
        if (!o.took_part[m]) continue;
        ++members;
        sum += (*state)[m][e] + static_cast<double>(o.input[m][e]);
        group_is_finite &= is_finite[m];
      }
      all_finite &= group_is_finite;
      if (!o.took_part[r]) {
        next[r] = y + g;
      } else if (!group_is_finite) {
        if (std::isfinite(got)) return "finite where a member was not";
        next[r] = y;
        continue;
      } else {
        next[r] = sum / members;
      }
      const double expected = kNodes * (next[r] - y);
      const double scale = 1 + std::fabs(next[r]) + std::fabs(y) + std::fabs(g);
      const double error = std::fabs(static_cast<double>(got) - expected) / (kNodes * scale);
      worst_error_ = std::max(worst_error_, error);
      if (!(error <= 1e-5)) {
        return std::to_string(got) + " on node " + std::to_string(r) + ", expected " +
               std::to_string(expected);
      }
      in += g;
      out += static_cast<double>(got) / kNodes;
      magnitude += std::fabs(y) + std::fabs(g);
    }
    if (all_finite && std::fabs(out - in) > kNodes * std::ldexp(1.0, -22) * magnitude) {
      return "the sum is not kept: " + std::to_string(out) + " of " + std::to_string(in);
    }
    for (int r = 0; r < kNodes; ++r) (*state)[r][e] = next[r];
    return "";
  }

  Options options_;
  std::mt19937_64 random_;
  ManualClock clock_;
  MemoryNetwork network_;
  PlanSet plans_;
  Watcher watcher_{&changes};
  std::vector<std::unique_ptr<Node>> nodes_;
  int connected_ = 0;
  std::uint64_t steps_begun_ = 0;
  std::map<std::pair<std::uint64_t, std::size_t>, Outcome> outcomes_;

  // The reference.
  std::uint64_t calls_before_ = 0, changed_in_ = 0;  // change_calls(): earlier calls, the step
  std::optional<std::uint64_t> first_call_;           // of the mode
  std::vector<JobCall> mode_calls_;                   // those of a step when it began
  bool are_buckets_moved_ = false;
  std::map<std::size_t, std::vector<std::vector<double>>> state_;  // by call, node, element
  std::uint64_t relaxed_elements_ = 0;
  double worst_error_ = 0;
  std::map<std::size_t, std::optional<ShadowReference>> shadow_;  // by call
  std::map<std::size_t, std::vector<double>> asked_;  // by call and element: the mean of all inputs
  double most_apart_ = 0;
};

}  // namespace riffle::testing
