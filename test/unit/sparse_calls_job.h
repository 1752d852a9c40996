// A job on N nodes in one process whose all-reduces go through RelaxedCalls in the sparse mode, on
// a network that reorders every frame. The rule that holds whatever happens: element by element,
// all gradients so far = all results so far + what all residuals hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "plugin/collective/relaxed_calls.h"
#include "plugin/collective/session.h"
#include "plugin/policy/rules/convert.h"
#include "plugin/transport/memory/memory_network.h"
#include "test/manual_clock.h"
#include "topology/plan/planner.h"

namespace riffle::testing {

struct SparseJobCall {  // of one step
  std::uint32_t bucket = 0;
  std::uint64_t first = 0, valid = 0, total = 0, count = 0;
  bool operator<(const SparseJobCall& o) const {
    return std::tie(bucket, first, valid) < std::tie(o.bucket, o.first, o.valid);
  }
};

class SparseCallsJob {
 public:
  struct Options {
    int nodes = 4;
    std::uint64_t seed = 1;
    std::uint64_t teams = 1;
    bool is_recursive = false;
    DataType type = DataType::kFloat32;
    SyncSettings settings{.mode = SyncMode::kSparse,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096,
                          .sparse = {.density = 0.02, .ramp_steps = 8}};
    std::vector<SparseJobCall> calls = {{0, 0, 5000, 5000, 5000},
                                        {1, 0, 2500, 4400, 2500},
                                        {1, 2500, 1900, 4400, 2500},  // the rest is stale
                                        {2, 0, 100, 100, 100},        // no large sum: exact
                                        {3, 0, 2048, 2048, 2048}};
    std::size_t chunk_bytes = 8192;
  };

  explicit SparseCallsJob(Options options)
      : options_(std::move(options)),
        random_(options_.seed),
        network_(options_.nodes, options_.seed),
        plans_(plan(even_fabric(options_.nodes, 400'000), 32 << 20, {})->plans) {
    for (int r = 0; r < options_.nodes; ++r) nodes_.push_back(make_node(r));
    for (int r = 0; r < options_.nodes; ++r) {
      NodeReport report;
      report.rank = r;
      nodes_[r]->session->start(&nodes_[r]->mesh, report);
    }
    while (connected_ < options_.nodes && network_.step()) {
    }
  }
  ~SparseCallsJob() {
    for (auto& node : nodes_) node->session->end();
  }
  SparseCallsJob(const SparseCallsJob&) = delete;
  SparseCallsJob& operator=(const SparseCallsJob&) = delete;

  // Runs so many steps; the first wrong thing, or empty.
  std::string run(int steps) {
    last_ += static_cast<std::uint64_t>(steps);
    for (int idle = 0; idle < 20000;) {
      bool all_done = true;
      for (int r = 0; r < options_.nodes; ++r) {
        if (std::string e = take_results(r); !e.empty()) return e;
        Node& n = *nodes_[r];
        if (n.step == last_ && n.running.empty()) continue;
        all_done = false;
        if (n.step < last_ && n.running.size() < 4 && random_() % 8 == 0) post(r);
      }
      if (!failure.empty()) return failure;
      if (all_done) return check();
      idle = network_.step() ? 0 : idle + 1;
      clock_.advance(200'000);
    }
    return "nothing moves";
  }

  void change_calls(std::vector<SparseJobCall> calls) { options_.calls = std::move(calls); }
  void kill(int r) { network_.kill(r); }
  MemoryNetwork& network() { return network_; }
  MeshSink* sink(int r) { return nodes_[r]->session->sink(); }
  Mesh& mesh(int r) { return network_.mesh(r); }
  const RelaxedCounts& counts(int r) const { return nodes_[r]->calls->counts(); }
  bool owes(int r) const { return nodes_[r]->calls->owing() != nullptr; }
  // Of calls that ran in the mode: how many, and the elements that were not zero in their results.
  std::uint64_t staged_calls() const { return staged_calls_; }
  double last_density() const { return last_density_; }
  // The largest |residual| of any node now.
  double largest_residual() const { return largest_residual_; }
  std::uint64_t steps() const { return last_; }

  // Faults: calls (node, step, call of the step) whose identity is lost, moved by one element, or
  // that hold an infinity.
  std::set<std::tuple<int, std::uint64_t, std::size_t>> lost, shifted, not_finite;
  std::vector<ModeChange> changes;
  std::string failure;

 private:
  class Watcher final : public EpochObserver {
   public:
    explicit Watcher(std::vector<ModeChange>* changes) : changes_(changes) {}
    void on_epoch(const EpochEvent& e) override {
      if (e.kind != EpochEvent::Kind::kMode) return;
      const bool is_sparse = e.mode == name_of(SyncMode::kSparse);
      changes_->push_back({is_sparse ? SyncMode::kSparse : SyncMode::kExact, e.first_seq, e.cause});
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
    std::vector<std::byte> data;  // in place
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
  struct Outcome {  // of one call on all nodes
    SparseJobCall call;
    int done = 0, staged = 0;
    std::vector<std::vector<float>> input, output;
  };
  using Bucket = std::pair<std::uint32_t, std::uint64_t>;  // and its elements
  struct Owed {
    std::vector<double> mass, tolerance;
  };

  std::unique_ptr<Node> make_node(int r) {
    auto node = std::make_unique<Node>(network_.mesh(r), clock_);
    Node* n = node.get();
    RelaxedOptions relaxed;
    relaxed.settings = options_.settings;
    relaxed.layout.min_bytes = 256;
    relaxed.rank = r;
    relaxed.size = options_.nodes;
    relaxed.chunk_bytes = options_.chunk_bytes;
    node->calls = std::make_unique<RelaxedCalls>(
        relaxed, RelaxedCalls::Hooks{[n](const CallShape&) { return n->identity; },
                                     [n](Operation* op) { n->session->submit(op); }});
    SessionOptions o;
    o.engine.piece_bytes = 256;
    o.engine.chunk_bytes = options_.chunk_bytes;
    o.engine.max_operations = 64;
    o.epochs.collectives = 4;
    o.epochs.shortest_ns = 0;
    o.epochs.burst_chunks = 4;
    o.epochs.least_horizon_ns = 1'000'000;
    o.epochs.mode = SyncMode::kSparse;
    o.epochs.warmup_steps = options_.settings.warmup_steps;
    o.background = &node->background;
    o.sparse =
        SparseRunner::Options{.most_elements = SparseRun::most_elements(options_.chunk_bytes / 4),
                              .work = node->calls->sparse_work()};
    SessionHooks hooks;
    hooks.decide = [this](const std::vector<NodeReport>&) {
      Verdict v;
      v.plans = encode(plans_);
      v.digest = digest(plans_);
      return v;
    };
    hooks.basis = [this] { return PlanBasis{even_fabric(options_.nodes, 400'000), false}; };
    hooks.epochs.count = [this] { return nodes_[0]->step; };
    hooks.epochs.observer = r == 0 ? &watcher_ : nullptr;
    hooks.epochs.party = node->calls.get();
    hooks.epochs.sparse_order = [this](const Fabric&, const PlanSet&) -> Result<SparseOrder> {
      SparseOrder order;
      order.teams = options_.teams;
      order.is_recursive = options_.is_recursive;
      for (int i = 0; i < options_.nodes; ++i) {  // not the order of their ranks
        order.node_at.push_back(static_cast<std::uint64_t>(options_.nodes - 1 - i));
      }
      order.is_sparse.assign(large_calls_and_small(), 1);
      return order;
    };
    hooks.connected = [this](const Status& s, const std::string&) { connected_ += s.is_ok(); };
    hooks.failed = [this](const std::string& why) { failure = why; };
    node->session = std::make_unique<Session>(r, options_.nodes, o, &clock_, std::move(hooks));
    network_.set_sink(r, node->session->sink());
    return node;
  }

  // Of the sequence: those that are not outside of it.
  std::size_t large_calls_and_small() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        options_.calls,
        [this](const SparseJobCall& c) { return c.count * size_of(options_.type) >= 256; }));
  }

  CallIdentity identity_of(int r, std::uint64_t step, std::size_t index) const {
    const SparseJobCall& c = options_.calls[index];
    CallIdentity id;
    if (lost.contains({r, step, index})) {
      id.why_not = "events were lost";
      return id;
    }
    id.is_sure = true;
    id.comm_id = 77;
    id.bucket = step * 100 + c.bucket;
    id.buffer = id.output = reinterpret_cast<const void*>(std::uintptr_t{4096} * (c.bucket + 1));
    id.first_element = c.first + (shifted.contains({r, step, index}) ? 1 : 0);
    id.valid_elements = c.valid;
    id.total_elements = c.total;
    id.is_last = c.first + c.valid == c.total;
    return id;
  }

  std::vector<std::byte> input_of(int r, std::uint64_t step, std::size_t index) const {
    const SparseJobCall& c = options_.calls[index];
    std::vector<float> data(c.count);
    std::mt19937 values(
        static_cast<unsigned>(step * 1000003 + index * 101 + static_cast<std::uint64_t>(r)));
    std::normal_distribution<float> normal;
    for (float& x : data) {
      const float n = normal(values);
      x = n * n * n;
    }
    // What is stale is anything.
    for (std::uint64_t i = c.valid; i < c.count; i += 3) data[i] = std::nanf("");
    if (not_finite.contains({r, step, index})) {
      data[c.valid / 2] = std::numeric_limits<float>::infinity();
    }
    std::vector<std::byte> bytes(c.count * size_of(options_.type));
    rules::narrow(data.data(), options_.type, c.count, bytes.data());
    return bytes;
  }

  std::vector<float> floats(const std::vector<std::byte>& bytes) const {
    std::vector<float> data(bytes.size() / size_of(options_.type));
    rules::widen(bytes.data(), options_.type, data.size(), data.data());
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
    const SparseJobCall& c = options_.calls[n.index];
    Outcome& outcome = outcomes_[{n.step, n.index}];
    outcome.call = c;
    outcome.input.resize(nodes_.size());
    outcome.output.resize(nodes_.size());
    n.identity = identity_of(r, n.step, n.index);
    const CallShape shape{1,
                          run->data.data(),
                          run->data.data(),
                          c.count,
                          static_cast<int>(options_.type),
                          static_cast<int>(ReduceOp::kSum)};
    outcome.input[r] = floats(run->data);
    const RelaxedCalls::Answer answer = n.calls->all_reduce(shape, &run->staged);
    if (answer == RelaxedCalls::Answer::kBusy) return;
    run->is_staged = answer == RelaxedCalls::Answer::kStaged;
    outcome.staged += run->is_staged;
    if (!run->is_staged) {
      run->exact = std::make_unique<Operation>();
      Operation& o = *run->exact;
      o.type = options_.type;
      o.count = c.count;
      o.send = o.recv = run->data.data();
      if (!run->staged.input.empty()) o.send = run->staged.input.data();
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
      outcome.output[r] = floats(run.data);
      ++outcome.done;
      n.running.erase(n.running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return "";
  }

  std::string check() {
    for (const auto& [key, outcome] : outcomes_) {
      const std::string where =
          " in step " + std::to_string(key.first) + ", call " + std::to_string(key.second);
      if (outcome.done != options_.nodes) return "not over everywhere" + where;
      if (outcome.staged != 0 && outcome.staged != options_.nodes) return "not all alike" + where;
      if (std::string e = take(outcome); !e.empty()) return e + where;
    }
    outcomes_.clear();
    return options_.settings.sparse.residual == sparse::ResidualPolicy::kEf21 ? "" : check_owed();
  }

  // Adds one call to what is owed.
  std::string take(const Outcome& o) {
    const auto valid = static_cast<std::size_t>(o.call.valid);
    Owed& owed = owed_[{o.call.bucket, o.call.total}];
    owed.mass.resize(o.call.total);
    owed.tolerance.resize(o.call.total);
    std::size_t not_zero = 0;
    const double unit = std::ldexp(1.0, options_.type == DataType::kFloat32 ? -23 : -8);
    for (std::size_t e = 0; e < valid; ++e) {
      double sum = 0, magnitude = 0;
      for (int r = 0; r < options_.nodes; ++r) {
        if (std::memcmp(&o.output[r][e], &o.output[0][e], sizeof(float)) != 0) {
          return "other bits at element " + std::to_string(e);
        }
        sum += static_cast<double>(o.input[r][e]);
        magnitude += std::fabs(static_cast<double>(o.input[r][e]));
      }
      const auto result = static_cast<double>(o.output[0][e]);
      if (std::isfinite(sum) != std::isfinite(result)) {
        return "finite or not at element " + std::to_string(e) + ": " + std::to_string(result) +
               ", expected " + std::to_string(sum);
      }
      if (!std::isfinite(sum)) continue;
      not_zero += result != 0;
      // What is owed grows by what was not delivered; rounding in the result's type at each level.
      const std::size_t at = o.call.first + e;
      owed.mass[at] += sum - result;
      owed.tolerance[at] +=
          2 * options_.nodes * std::ldexp(1.0, -24) * (magnitude + std::fabs(owed.mass[at])) +
          options_.nodes * unit * (std::fabs(result) + magnitude);
    }
    if (o.staged > 0) {
      ++staged_calls_;
      last_density_ = static_cast<double>(not_zero) / static_cast<double>(valid);
    }
    return "";
  }

  // The residuals of all nodes against what is owed.
  std::string check_owed() {
    std::map<Bucket, std::vector<double>> held;
    largest_residual_ = 0;
    for (int r = 0; r < options_.nodes; ++r) {
      for (RelaxedRun* run : {nodes_[r]->calls->run(), nodes_[r]->calls->owing()}) {
        if (run == nullptr) continue;
        for (std::size_t i = 0; i < run->positions().size(); ++i) {
          const Layout::Piece& p = run->position(i).piece;
          const auto bucket =
              static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p.buffer) / 4096 - 1);
          std::vector<double>& sum = held[{bucket, p.total}];
          sum.resize(p.total);
          for (const SparseSegment& s : run->sparse()->segments(i)) {
            for (std::uint64_t e = 0; e < s.elements; ++e) {
              const auto x = static_cast<double>(s.state.residual[e]);
              sum[p.first + s.first + e] += x;
              largest_residual_ = std::max(largest_residual_, std::fabs(x));
            }
          }
        }
      }
    }
    for (const auto& [bucket, owed] : owed_) {
      const std::vector<double>& sum = held[bucket];
      for (std::size_t e = 0; e < owed.mass.size(); ++e) {
        const double is = e < sum.size() ? sum[e] : 0;
        if (!(std::fabs(is - owed.mass[e]) <= owed.tolerance[e])) {
          return "element " + std::to_string(e) + " of bucket " + std::to_string(bucket.first) +
                 ": residuals hold " + std::to_string(is) + ", owed is " +
                 std::to_string(owed.mass[e]);
        }
      }
    }
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
  std::uint64_t last_ = 0;
  std::map<std::pair<std::uint64_t, std::size_t>, Outcome> outcomes_;
  std::map<Bucket, Owed> owed_;
  std::uint64_t staged_calls_ = 0;
  double last_density_ = 0, largest_residual_ = 0;
};

}  // namespace riffle::testing
