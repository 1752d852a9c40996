// A job on the simulated network whose all-reduces go through RelaxedCalls while nodes are lost
// (RIFFLE_ON_LOSS=continue), and what must hold of every call, element by element:
//
//   exact    the sum over all nodes, or the scaled one over the nodes of one term; the same bits
//   sparse   result and new residuals = gradients and old residuals of those it ran among; the same
//            bits
//   relaxed  what a node's parameters moved by is what it got; each segment is the mean of a group
//            of one plan that ran, or everybody's own, and then on all survivors
//   shadow   as they moved; at steps over all nodes they are together
//
// Jobs may close their communicators when they have all results, each when it likes: nobody may see
// an error then.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/relaxed_calls.h"
#include "plugin/collective/session.h"
#include "plugin/transport/sim/sim_network.h"
#include "test/sim/sim_background.h"
#include "topology/plan/planner.h"

namespace riffle::sim {

struct ModeCall {  // of one step
  std::uint32_t bucket = 0;
  std::uint64_t first = 0, valid = 0, total = 0, count = 0;
};

struct ModeFault {
  enum class Kind { kKill, kStop, kUnplug, kCut };
  Kind kind = Kind::kKill;
  int node = 0;
  // Strikes so long after the first node has posted the first call of this step, or has heard of
  // the next agreement on a mode from there on.
  std::uint64_t step = 0, delay_ns = 0;
  bool is_in_switch = false;
  std::vector<int> side = {};  // kCut: nothing passes any more between the node and all but these
};

class ModeJob {
 public:
  struct Options {
    std::uint64_t seed = 1;
    int nodes = 8;
    int steps = 30;
    std::uint64_t sparse_teams = 1;
    SyncSettings settings{.mode = SyncMode::kDsSync,
                          .full_every = 7,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096,
                          .sparse = {.density = 0.02, .ramp_steps = 8},
                          .survives_losses = true};
    SurvivorOptions survivors{.is_on = true};
    std::vector<ModeCall> calls = {{0, 0, 3000, 3000, 3000},
                                   {1, 0, 1500, 2600, 1500},
                                   {1, 1500, 1100, 2600, 1500},  // the rest is stale
                                   {2, 0, 100, 100, 100},        // no large sum: exact
                                   {3, 0, 2048, 2048, 2048}};
    // Where set, of `nodes` nodes; else all are equal.
    std::optional<Fabric> fabric;
    std::vector<ModeFault> faults;
    // Lost by what happens to others: they have no quorum, and must end with an error.
    std::vector<int> without_quorum;
    bool is_in_place = false;
    std::uint64_t peer_timeout_ns = 300'000'000;
    // By node: how much longer it takes from look to look.
    std::vector<std::uint64_t> delay_ns;
    // By node: how long after its last result it closes. Empty: nobody does.
    std::vector<std::uint64_t> close_ns;
    // Not 0: so long after its close a process ends, whatever lingers in it.
    std::uint64_t exit_ns = 0;
  };

  explicit ModeJob(Options options);
  ~ModeJob();
  ModeJob(const ModeJob&) = delete;
  ModeJob& operator=(const ModeJob&) = delete;

  // Runs to the end; the first wrong thing, or empty.
  std::string run();

  bool survives(int r) const { return lost_.count(r) == 0; }
  const std::string& failure(int r) const;
  std::uint64_t staged_calls = 0;       // of those that all survivors finished
  std::uint64_t staged_after_loss = 0;  // ... posted by all after the first loss was survived
  std::uint64_t dense_segments = 0;     // sparse ones that ran densely, among fewer nodes
  std::uint64_t broken_off = 0;         // calls in which a segment was left as each node's own
  std::uint64_t full_after_loss = 0;    // relaxed steps over all survivors
  std::uint64_t sparse_after_loss = 0;  // segments that were sparse among survivors
  int faults_in_switches = 0;
  int terms = 1;
  int lingered = 0;      // nodes that closed while others needed them
  int cut_off = 0;       // ... and ended while they still did
  int closed_early = 0;  // nodes that closed while others had results to come

 private:
  struct Running {
    std::uint64_t step = 0;
    std::size_t index = 0;
    StagedCall staged;
    bool is_staged = false, is_full = false;
    std::unique_ptr<Operation> exact;
    std::vector<float> send, recv, kept;
    std::shared_ptr<RelaxedRun> run;
    std::uint64_t broken_before = 0;
    // What the job sends.
    float* data() { return send.empty() ? recv.data() : send.data(); }
  };
  struct Part {  // of one call on one node
    bool is_posted = false, is_done = false, is_staged = false, is_full = false;
    std::uint64_t broken = 0, term = 0;
    std::vector<float> input, before, after, output;
    std::vector<SparseSegment::Outcome> outcomes;
    std::size_t among = 0;  // nodes that a sparse one was ordered for
  };
  struct Outcome {
    ModeCall call;
    SyncMode mode = SyncMode::kExact;
    std::uint64_t segment = 0;  // elements of all but the last
    std::vector<Part> parts;
  };
  struct Node;
  struct Moved {
    std::vector<std::vector<double>> moved;  // by node, as each got it
    std::vector<double> asked, offset;  // by element: all survivors' gradients, and how far off
  };

  Fabric fabric() const { return options_.fabric.value_or(even_fabric(options_.nodes, 1'000'000)); }
  std::unique_ptr<Node> make_node(int r);
  static RelaxedPlans halves(int nodes);
  void poll(Node& n);
  void poll_later(Node& n);
  void post(Node& n);
  void take_results(Node& n);
  void snapshot(const Running& run, Part* part, bool is_after);
  void close(Node& n);
  void end(Node& n);
  bool is_through(const Node& n) const;
  void strike(const ModeFault& f);
  void arm(const ModeFault& f);
  void switching(const Node& n);
  CallIdentity identity_of(const ModeCall& c, std::uint64_t step) const;
  std::vector<float> input_of(int r, std::uint64_t step, std::size_t index) const;

  std::string check();
  std::string check_exact(const Outcome& o) const;
  std::string check_sparse(const Outcome& o);
  std::string check_relaxed(const Outcome& o);
  std::string check_moved(const Outcome& o, std::size_t index);
  std::vector<int> survivors() const;
  static std::string same_bits(const Outcome& o, const std::vector<int>& nodes);
  double scale_of(std::size_t members) const {
    if (!options_.survivors.rescales) return 1;
    return static_cast<double>(options_.nodes) / static_cast<double>(members);
  }
  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }

  Options options_;
  std::mt19937_64 random_;
  SimNetwork network_;
  PlanSet plans_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::set<int> lost_;                // whom a fault concerned
  std::set<int> must_fail_;           // ... those that live, and have to hear of it
  std::set<std::vector<int>> sides_;  // all terms' members
  std::deque<ModeFault> waiting_, in_switch_;
  std::map<std::pair<std::uint64_t, std::size_t>, Outcome> outcomes_;
  std::map<std::size_t, Moved> moved_;
  std::string broken_;
};

// ------------------------------------------------------------------------------------------ nodes

struct ModeJob::Node final : private MeshSink {
  Node(ModeJob* all_nodes, int own_rank)
      : all(all_nodes),
        rank(own_rank),
        random(all->options_.seed * 100 + static_cast<std::uint64_t>(own_rank)),
        background(&all->network_, own_rank, [this] { return random() % 300'000; }) {}

  MeshSink* sink() { return this; }
  MeshSink& below() { return *session->sink(); }
  void opened(int peer) override { below().opened(peer); }
  Result<std::byte*> place(int peer, const FrameHeader& h) override {
    return below().place(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    if (h.type == FrameType::kControl && h.key == PlanSwitch::kModeKinds) all->switching(*this);
    below().arrived(peer, h, payload);
  }
  void sent(int peer, std::uint64_t cookie) override { below().sent(peer, cookie); }
  void departed(int peer) override { below().departed(peer); }
  void lost(int peer, const Status& why) override { below().lost(peer, why); }

  std::uint64_t term() const {
    const Membership* const members = session->membership();
    return members == nullptr ? 0 : members->term;  // null: a loss is an error
  }

  ModeJob* const all;
  const int rank;
  std::mt19937_64 random;
  SimBackground background;
  CallIdentity identity;
  std::unique_ptr<RelaxedCalls> calls;
  std::unique_ptr<Session> session;
  std::uint64_t step = 0, posted = 0;
  std::size_t index = 0;
  std::unique_ptr<Running> next;  // being offered
  std::deque<std::unique_ptr<Running>> running;
  bool is_connected = false;
  bool is_closing = false, has_ended = false;
  std::string failure;
};

inline ModeJob::ModeJob(Options options)
    : options_(std::move(options)),
      random_(options_.seed),
      network_(fabric(), {.seed = options_.seed,
                          .jitter_ns = 100'000,
                          .peer_timeout_ns = options_.peer_timeout_ns,
                          .poisons = true}),
      plans_(plan(fabric(), 32 << 20, {})->plans) {
  plans_.relaxed = halves(options_.nodes);
  std::vector<int> everybody(options_.nodes);
  std::iota(everybody.begin(), everybody.end(), 0);
  sides_.insert(everybody);
  for (const ModeFault& f : options_.faults) waiting_.push_back(f);
  for (int r = 0; r < options_.nodes; ++r) nodes_.push_back(make_node(r));
  for (auto& n : nodes_) {
    NodeReport report;
    report.rank = n->rank;
    n->session->start(&network_.mesh(n->rank), report);
  }
}

inline const std::string& ModeJob::failure(int r) const { return nodes_[r]->failure; }

inline ModeJob::~ModeJob() {
  for (auto& n : nodes_) n->background.stop();
}

// Halves, then every other node, in turn; few nodes all together.
inline RelaxedPlans ModeJob::halves(int nodes) {
  const auto group = [](const std::vector<int>& members) {
    Group g;
    g.pattern = Pattern::kDirect;
    g.members = members;
    for (std::size_t i = 0; i <= members.size(); ++i) {
      g.cuts.push_back(static_cast<Share>(kShareUnits * i / members.size()));
    }
    return g;
  };
  std::vector<int> all(nodes), low, high, even, odd;
  std::iota(all.begin(), all.end(), 0);
  RelaxedPlans r;
  if (nodes < 2) return r;
  r.steps = r.lanes = 2;
  r.table = {0, 1, 1, 0};
  for (const int i : all) {
    (i < nodes / 2 ? low : high).push_back(i);
    (i % 2 == 0 ? even : odd).push_back(i);
  }
  if (nodes < 4) {
    r.partitions = {{nodes, {{{group(all)}}}}};
    r.table = {0, 0, 0, 0};
  } else {
    r.partitions = {{nodes, {{{group(low), group(high)}}}}, {nodes, {{{group(even), group(odd)}}}}};
  }
  return r;
}

inline std::unique_ptr<ModeJob::Node> ModeJob::make_node(int r) {
  auto node = std::make_unique<Node>(this, r);
  Node* n = node.get();
  constexpr std::size_t kChunkBytes = 6144;
  RelaxedOptions relaxed;
  relaxed.settings = options_.settings;
  relaxed.layout.min_bytes = 256;
  relaxed.rank = r;
  relaxed.size = options_.nodes;
  relaxed.chunk_bytes = kChunkBytes;
  n->calls = std::make_unique<RelaxedCalls>(
      relaxed, RelaxedCalls::Hooks{[n](const CallShape&) { return n->identity; },
                                   [n](Operation* op) { n->session->submit(op); }});
  SessionOptions o;
  o.engine.piece_bytes = 1024;
  o.engine.chunk_bytes = kChunkBytes;
  o.engine.max_operations = 64 + 2 * RelaxedRun::kMaxSegments;
  o.engine.has_blocks = false;
  o.connect_timeout_ns = 5'000'000'000;
  o.peer_timeout_ns = options_.peer_timeout_ns;
  o.survivors = options_.survivors;
  o.epochs.collectives = 4;
  o.epochs.shortest_ns = 0;
  o.epochs.burst_chunks = 4;
  o.epochs.least_horizon_ns = 1'000'000;
  o.epochs.mode = options_.settings.mode;
  o.epochs.warmup_steps = options_.settings.warmup_steps;
  o.background = &n->background;
  if (o.epochs.mode == SyncMode::kSparse) {
    o.sparse = SparseRunner::Options{.most_elements = SparseRun::most_elements(kChunkBytes / 4),
                                     .work = n->calls->sparse_work()};
  }
  SessionHooks hooks;
  hooks.decide = [this](const std::vector<NodeReport>&) {
    Verdict v;
    v.plans = encode(plans_);
    v.digest = digest(plans_);
    return v;
  };
  hooks.basis = [this] { return PlanBasis{fabric(), false}; };
  hooks.epochs.count = [n] { return n->posted; };
  hooks.epochs.party = n->calls.get();
  hooks.epochs.relaxed_plans = [mode = o.epochs.mode](const Fabric& fabric) {
    return mode == SyncMode::kSparse ? RelaxedPlans() : halves(fabric.size());
  };
  hooks.epochs.sparse_order = [this](const Fabric& fabric, const PlanSet&) -> Result<SparseOrder> {
    SparseOrder order;
    const auto nodes = static_cast<std::uint64_t>(fabric.size());
    order.teams = nodes % options_.sparse_teams == 0 ? options_.sparse_teams : 1;
    for (std::uint64_t i = 0; i < nodes; ++i) order.node_at.push_back(nodes - 1 - i);
    order.is_sparse.assign(options_.calls.size(), 1);
    return order;
  };
  hooks.connected = [this, n](const Status& s, const std::string&) {
    if (!s) return broken("connect: " + s.message());
    n->is_connected = true;
    poll_later(*n);
  };
  hooks.failed = [n](const std::string& why) { n->failure = why; };
  hooks.went_on = [this, n](const LossRecord&, const std::string&) {
    sides_.insert(n->session->membership()->nodes);
  };
  n->session =
      std::make_unique<Session>(r, options_.nodes, o, &network_.timers(r), std::move(hooks));
  network_.set_sink(r, n->sink());
  return node;
}

// ----------------------------------------------------------------------------------------- faults

inline void ModeJob::strike(const ModeFault& f) {
  lost_.insert(f.node);
  if (f.kind == ModeFault::Kind::kCut) must_fail_.insert(f.node);
  for (const int r : options_.without_quorum) {
    lost_.insert(r);
    must_fail_.insert(r);
  }
  switch (f.kind) {
    case ModeFault::Kind::kKill:
      return network_.kill(f.node);
    case ModeFault::Kind::kStop:
      return network_.stop(f.node);
    case ModeFault::Kind::kUnplug:
      for (int other = 0; other < options_.nodes; ++other) {
        if (other != f.node) network_.break_link(f.node, other);
      }
      return;
    case ModeFault::Kind::kCut:
      for (int other = 0; other < options_.nodes; ++other) {
        const bool is_here = std::ranges::find(f.side, other) != f.side.end();
        if (!is_here) network_.break_link(f.node, other, true);
      }
  }
}

inline void ModeJob::arm(const ModeFault& f) {
  network_.at(network_.now_ns() + f.delay_ns, [this, f] { strike(f); });
}

// One at a time: the next one waits for the next agreement.
inline void ModeJob::switching(const Node& n) {
  if (in_switch_.empty() || n.rank != n.session->membership()->nodes.back()) return;  // hears late
  arm(in_switch_.front());
  in_switch_.pop_front();
  ++faults_in_switches;
}

// ------------------------------------------------------------------------------------------- job

inline CallIdentity ModeJob::identity_of(const ModeCall& c, std::uint64_t step) const {
  CallIdentity id;
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

inline std::vector<float> ModeJob::input_of(int r, std::uint64_t step, std::size_t index) const {
  std::vector<float> data(options_.calls[index].count);
  std::mt19937 values(
      static_cast<unsigned>(step * 1000003 + index * 101 + static_cast<std::uint64_t>(r)));
  for (float& x : data) {
    const float u = static_cast<float>(values()) * 0x1p-31F - 0.9F;
    x = u * u * u;
  }
  return data;
}

inline void ModeJob::poll_later(Node& n) {
  const auto rank = static_cast<std::size_t>(n.rank);
  const std::uint64_t delay_ns = options_.delay_ns.empty() ? 0 : options_.delay_ns[rank];
  const std::uint64_t wait_ns = 50'000 + n.random() % 100'000 + delay_ns;
  network_.timers(n.rank).call_at(network_.now_ns() + wait_ns, [this, &n] { poll(n); });
}

inline void ModeJob::poll(Node& n) {
  take_results(n);
  if (!n.failure.empty()) return;
  if (n.step < static_cast<std::uint64_t>(options_.steps) && n.running.size() < 4) post(n);
  const bool has_all = n.step == static_cast<std::uint64_t>(options_.steps) && n.running.empty();
  if (!has_all) return poll_later(n);
  if (options_.close_ns.empty()) return;
  const std::uint64_t wait_ns = options_.close_ns[static_cast<std::size_t>(n.rank)];
  network_.timers(n.rank).call_at(network_.now_ns() + wait_ns, [this, &n] { close(n); });
}

// As Communicator::close().
inline void ModeJob::close(Node& n) {
  n.is_closing = true;
  n.calls->fence();
  closed_early += std::ranges::any_of(nodes_, [&](const auto& other) {
    return survives(other->rank) &&
           (other->step < static_cast<std::uint64_t>(options_.steps) || !other->running.empty());
  });
  if (options_.exit_ns > 0) {
    network_.at(network_.now_ns() + options_.exit_ns, [this, &n] {
      cut_off += !n.has_ended;
      n.has_ended = true;
      network_.kill(n.rank);
    });
  }
  const std::uint64_t closed_ns = network_.now_ns();
  if (!n.session->retire([this, &n, closed_ns] {
        cut_off += network_.now_ns() - closed_ns >= options_.peer_timeout_ns;
        end(n);
      })) {
    return end(n);
  }
  ++lingered;
}

inline void ModeJob::end(Node& n) {
  n.has_ended = true;
  if (n.session->end()) {
    network_.close(n.rank);
  } else {
    broken("node " + std::to_string(n.rank) + " does not end well");
    network_.mesh(n.rank).abort();
  }
  n.background.stop();
}

inline bool ModeJob::is_through(const Node& n) const {
  if (!survives(n.rank)) return !must_fail_.contains(n.rank) || !n.failure.empty();
  if (!options_.close_ns.empty()) return n.has_ended;
  return n.step == static_cast<std::uint64_t>(options_.steps) && n.running.empty();
}

inline void ModeJob::post(Node& n) {
  while (!waiting_.empty() && n.step >= waiting_.front().step) {
    const ModeFault f = waiting_.front();
    waiting_.pop_front();
    f.is_in_switch ? in_switch_.push_back(f) : arm(f);
  }
  const ModeCall& c = options_.calls[n.index];
  if (!n.next) {
    n.next = std::make_unique<Running>();
    n.next->step = n.step;
    n.next->index = n.index;
    n.next->recv = input_of(n.rank, n.step, n.index);
    if (options_.is_in_place) {
      n.next->kept = n.next->recv;
    } else {
      n.next->send = n.next->recv;
      std::ranges::fill(n.next->recv, -1e6F);
    }
  }
  Running& run = *n.next;
  Outcome& outcome = outcomes_[{n.step, n.index}];
  outcome.call = c;
  outcome.parts.resize(options_.nodes);
  Part& part = outcome.parts[n.rank];
  part.input.assign(run.data(), run.data() + c.count);
  n.identity = identity_of(c, n.step);
  run.broken_before = n.calls->counts().broken_off;
  const auto* kept = reinterpret_cast<const std::byte*>(run.kept.data());
  run.staged.kept = options_.is_in_place ? kept : nullptr;
  const CallShape shape{1,
                        run.data(),
                        run.recv.data(),
                        c.count,
                        static_cast<int>(DataType::kFloat32),
                        static_cast<int>(ReduceOp::kSum)};
  const RelaxedCalls::Answer answer = n.calls->all_reduce(shape, &run.staged);
  if (answer == RelaxedCalls::Answer::kBusy) return;
  ++n.posted;
  part.is_posted = true;
  part.term = n.term();
  part.is_staged = run.is_staged = answer == RelaxedCalls::Answer::kStaged;
  if (run.is_staged) {
    run.run = run.staged.run;
    part.is_full = run.staged.is_full;
    outcome.mode = run.run->mode();
    const RelaxedRun::Position& p = run.run->position(run.staged.position);
    SparseRun* const sparse = run.run->sparse();
    outcome.segment =
        sparse != nullptr ? sparse->segments(run.staged.position)[0].elements : p.segment_elements;
    snapshot(run, &part, false);
  } else {
    if (!run.staged.input.empty()) {  // with residuals of a mode that has ended
      std::memcpy(part.input.data(), run.staged.input.data(), run.staged.input.size());
    }
    run.exact = std::make_unique<Operation>();
    Operation& o = *run.exact;
    o.count = c.count;
    o.send = reinterpret_cast<const std::byte*>(run.data());
    o.recv = reinterpret_cast<std::byte*>(run.recv.data());
    o.kept = options_.is_in_place ? kept : nullptr;
    if (!run.staged.input.empty()) o.send = run.staged.input.data();
    o.state = Operation::State::kRunning;
    n.session->submit(&o);
  }
  n.running.push_back(std::move(n.next));
  if (++n.index == options_.calls.size()) {
    n.index = 0;
    ++n.step;
  }
}

inline void ModeJob::snapshot(const Running& run, Part* part, bool is_after) {
  std::vector<float>& to = is_after ? part->after : part->before;
  const std::size_t position = run.staged.position;
  if (SparseRun* sparse = run.run->sparse()) {
    for (const SparseSegment& s : sparse->segments(position)) {
      to.insert(to.end(), s.state.residual.begin(), s.state.residual.end());
      part->among = s.places->node_at.size();
      if (is_after) part->outcomes.push_back(s.outcome);
    }
  } else {
    const RelaxedRun::Position& p = run.run->position(position);
    to.assign(p.state, p.state + p.piece.valid);
  }
}

inline void ModeJob::take_results(Node& n) {
  while (!n.running.empty()) {
    Running& run = *n.running.front();
    if (run.is_staged) {
      const Result<bool> tested = n.calls->test(&run.staged);
      if (!tested) {
        if (survives(n.rank)) broken("node " + std::to_string(n.rank) + ": a call failed");
        if (n.failure.empty()) n.failure = tested.status().message();
        return;
      }
      if (!*tested) return;
    } else if (run.exact->state == Operation::State::kFailed) {
      if (survives(n.rank)) broken("node " + std::to_string(n.rank) + ": an exact call failed");
      if (n.failure.empty()) n.failure = "failed";
      return;
    } else if (run.exact->state != Operation::State::kDone) {
      return;
    }
    Part& part = outcomes_[{run.step, run.index}].parts[n.rank];
    part.is_done = true;
    part.output = run.recv;
    if (run.is_staged) {
      snapshot(run, &part, true);
      part.broken = n.calls->counts().broken_off - run.broken_before;
    }
    n.running.pop_front();
  }
}

inline std::string ModeJob::run() {
  constexpr std::uint64_t kLongestNs = 20'000'000'000;
  const auto is_over = [this] {
    return std::ranges::all_of(nodes_, [this](const auto& n) { return is_through(*n); });
  };
  while (broken_.empty() && !is_over()) {
    if (!network_.step()) return "nothing moves";
    if (network_.now_ns() > kLongestNs) {
      std::string where = "it does not end:";
      for (const auto& n : nodes_) {
        where += " node " + std::to_string(n->rank) + " at " + std::to_string(n->step) + "." +
                 std::to_string(n->index) + (n->failure.empty() ? "" : " (" + n->failure + ")");
      }
      return where;
    }
    for (const auto& n : nodes_) {
      if (survives(n->rank) && !n->failure.empty()) {
        return "node " + std::to_string(n->rank) + ": " + n->failure;
      }
    }
  }
  terms = static_cast<int>(sides_.size());
  return broken_.empty() ? check() : broken_;
}

// ------------------------------------------------------------------------------------------ check

inline std::vector<int> ModeJob::survivors() const {
  std::vector<int> left;
  for (int r = 0; r < options_.nodes; ++r) {
    if (survives(r)) left.push_back(r);
  }
  return left;
}

inline std::string ModeJob::check() {
  const std::vector<int> left = survivors();
  if (left.empty()) return "";
  for (const auto& [key, o] : outcomes_) {
    const std::string where =
        " in step " + std::to_string(key.first) + ", call " + std::to_string(key.second);
    std::size_t staged = 0;
    bool is_late = true, is_broken_off = false;
    for (const int r : left) {
      const Part& p = o.parts[r];
      if (!p.is_done) return "not over everywhere" + where;
      staged += p.is_staged;
      is_late = is_late && p.term > 0;
      is_broken_off = is_broken_off || p.broken > 0;
    }
    if (staged != 0 && staged != left.size()) return "not all alike" + where;
    std::string e;
    if (staged == 0) {
      e = check_exact(o);
    } else {
      ++staged_calls;
      staged_after_loss += is_late;
      broken_off += is_broken_off;
      if (o.mode == SyncMode::kSparse) {
        e = check_sparse(o);
      } else if (o.mode == SyncMode::kShadowSync || options_.settings.momentum > 0) {
        e = check_moved(o, key.second);
      } else {
        e = check_relaxed(o);
        if (e.empty()) e = check_moved(o, key.second);
      }
    }
    if (!e.empty()) return e + where;
  }
  return "";
}

inline std::string ModeJob::same_bits(const Outcome& o, const std::vector<int>& nodes) {
  const Part& first = o.parts[nodes.front()];
  for (const int r : nodes) {
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      if (std::memcmp(&o.parts[r].output[e], &first.output[e], sizeof(float)) != 0) {
        return "other bits on nodes " + std::to_string(nodes.front()) + " and " +
               std::to_string(r) + " at element " + std::to_string(e) + ": " +
               std::to_string(first.output[e]) + ", " + std::to_string(o.parts[r].output[e]);
      }
    }
  }
  return "";
}

inline std::string ModeJob::check_exact(const Outcome& o) const {
  const std::vector<int> left = survivors();
  if (std::string e = same_bits(o, left); !e.empty()) return e;
  for (const std::vector<int>& side : sides_) {
    bool is_it = true;
    for (std::uint64_t e = 0; e < o.call.valid && is_it; ++e) {
      double sum = 0, magnitude = 0;
      for (const int r : side) {
        is_it = is_it && o.parts[r].is_posted;
        if (!is_it) break;
        sum += static_cast<double>(o.parts[r].input[e]);
        magnitude += std::fabs(static_cast<double>(o.parts[r].input[e]));
      }
      const double scale = scale_of(side.size());
      const auto is = static_cast<double>(o.parts[left.front()].output[e]);
      is_it = is_it && std::fabs(is - scale * sum) <= 1e-6 * scale * magnitude;
    }
    if (is_it) return "";
  }
  return "the sum over no term's nodes";
}

inline std::string ModeJob::check_sparse(const Outcome& o) {
  const std::vector<int> left = survivors();
  if (std::string e = same_bits(o, left); !e.empty()) return e;
  const Part& any = o.parts[left.front()];
  for (std::size_t s = 0; s < any.outcomes.size(); ++s) {
    const std::uint64_t begin = s * o.segment, end = std::min(begin + o.segment, o.call.valid);
    const bool is_dense = any.outcomes[s] == SparseSegment::Outcome::kDense;
    if (!is_dense && any.outcomes[s] != SparseSegment::Outcome::kSparse) return "done again";
    if (options_.settings.sparse.residual == sparse::ResidualPolicy::kEf21) continue;
    bool is_right = false, is_known = true;
    std::string wrong;
    for (const std::vector<int>& side : sides_) {
      if (!is_dense && side.size() != any.among) continue;
      const bool has_all = std::ranges::all_of(side, [&](int r) { return o.parts[r].is_done; });
      const bool has_posted =
          std::ranges::all_of(side, [&](int r) { return o.parts[r].is_posted; });
      if (!has_posted) continue;
      // Of a dense one nothing is left. What a lost node would have kept of a sparse one that it
      // did not see the end of, nobody knows.
      if (!is_dense && !has_all) {
        is_known = false;
        continue;
      }
      bool is_it = true;
      for (std::uint64_t e = begin; e < end && is_it; ++e) {
        double owed = 0, held = 0, magnitude = 0;
        for (const int r : side) {
          const Part& p = o.parts[r];
          owed += static_cast<double>(p.input[e]) + static_cast<double>(p.before[e]);
          magnitude += std::fabs(static_cast<double>(p.input[e])) +
                       std::fabs(static_cast<double>(p.before[e]));
          if (p.is_done) held += static_cast<double>(p.after[e]);
        }
        held += static_cast<double>(any.output[e]) / scale_of(side.size());
        is_it = std::fabs(held - owed) <= 1e-5 * magnitude;
        if (!is_it) {
          wrong += "; among " + std::to_string(side.size()) + " element " + std::to_string(e) +
                   " is " + std::to_string(held) + ", owed is " + std::to_string(owed);
        }
      }
      is_right = is_right || is_it;
      if (!is_it) continue;
      dense_segments += is_dense && side.size() < static_cast<std::size_t>(options_.nodes);
      sparse_after_loss += !is_dense && side.size() < static_cast<std::size_t>(options_.nodes);
      break;
    }
    if (!is_right && is_known) return "not conserved" + wrong;
  }
  return "";
}

// Each segment: what a survivor's state moved to is the mean of a group of one partition of one
// term's plans, or of all, or its own contribution; on all survivors of the same one.
inline std::string ModeJob::check_relaxed(const Outcome& o) {
  struct Candidate {
    std::vector<std::vector<int>> groups;  // none: each its own
  };
  std::vector<Candidate> candidates = {{}};
  for (const std::vector<int>& side : sides_) {
    if (!std::ranges::all_of(side, [&](int r) { return o.parts[r].is_posted; })) continue;
    candidates.push_back({{side}});
    for (const GroupPlan& p : halves(static_cast<int>(side.size())).partitions) {
      Candidate c;
      for (const Group& g : p.levels[0].groups) {
        c.groups.emplace_back();
        for (const int m : g.members) c.groups.back().push_back(side[m]);
      }
      candidates.push_back(c);
    }
  }
  const std::vector<int> left = survivors();
  for (std::uint64_t begin = 0; begin < o.call.valid; begin += o.segment) {
    const std::uint64_t end = std::min(begin + o.segment, o.call.valid);
    std::string wrong;
    bool is_any = false;
    for (const Candidate& c : candidates) {
      std::string e;
      for (const int r : left) {
        std::vector<int> group = {r};
        for (const auto& g : c.groups) {
          if (std::ranges::find(g, r) != g.end()) group = g;
        }
        const Part& p = o.parts[r];
        for (std::uint64_t i = begin; i < end && e.empty(); ++i) {
          double mean = 0;
          for (const int m : group) {
            mean += (static_cast<double>(o.parts[m].before[i]) +
                     static_cast<double>(o.parts[m].input[i])) /
                    static_cast<double>(group.size());
          }
          const auto before = static_cast<double>(p.before[i]);
          const auto after = static_cast<double>(p.after[i]);
          const double got = static_cast<double>(p.output[i]) / options_.nodes;
          const double tolerance = 1e-5 * (1 + std::fabs(mean) + std::fabs(before));
          const bool is_reset = p.is_full && after == 0;
          if (std::fabs(before + got - mean) > tolerance ||
              (!is_reset && std::fabs(after - mean) > tolerance)) {
            e = "node " + std::to_string(r) + " at element " + std::to_string(i) + " moved from " +
                std::to_string(before) + " by " + std::to_string(got) + " to " +
                std::to_string(after) + ", expected " + std::to_string(mean);
          }
        }
      }
      if (e.empty()) is_any = true;
      wrong = wrong.empty() ? e : wrong;
      if (is_any) break;
    }
    if (!is_any) return "no mean of any kind: " + wrong;
  }
  return "";
}

// At a step over all survivors all have moved by as much; and what the mean of that is off by (the
// part in it that lost nodes had) stays the same from loss to loss.
inline std::string ModeJob::check_moved(const Outcome& o, std::size_t index) {
  const std::vector<int> left = survivors();
  Moved& m = moved_[index];
  m.moved.resize(options_.nodes, std::vector<double>(o.call.valid));
  m.asked.resize(o.call.valid);
  bool is_full = true, is_late = true;
  for (const int r : left) {
    const Part& p = o.parts[r];
    is_full = is_full && p.is_full && p.broken == 0;
    is_late = is_late && p.term > 0;
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      m.moved[r][e] += static_cast<double>(p.output[e]) / options_.nodes;
      m.asked[e] += static_cast<double>(p.input[e]) / static_cast<double>(left.size());
    }
  }
  std::uint64_t latest = 0;  // who has closed may not know of it
  for (const int r : left) latest = std::max(latest, nodes_[r]->term());
  const bool is_of_others = latest == 0 && !lost_.empty();  // a loss that nobody had to notice
  if (!is_full || is_of_others || options_.settings.momentum > 0 ||
      std::ranges::any_of(left, [&](int r) { return o.parts[r].term < latest; })) {
    return "";
  }
  full_after_loss += is_late;
  const bool is_first = m.offset.empty();
  m.offset.resize(o.call.valid);
  for (std::uint64_t e = 0; e < o.call.valid; ++e) {
    for (const int r : left) {
      const double tolerance = 1e-4 * (1 + std::fabs(m.moved[left.front()][e]));
      if (std::fabs(m.moved[r][e] - m.moved[left.front()][e]) > tolerance) {
        return "after a step over all, node " + std::to_string(r) + " has moved by " +
               std::to_string(m.moved[r][e]) + ", another by " +
               std::to_string(m.moved[left.front()][e]);
      }
    }
    const double offset = m.moved[left.front()][e] - m.asked[e];
    if (!is_first && std::fabs(offset - m.offset[e]) > 1e-4 * (1 + std::fabs(m.asked[e]))) {
      return "element " + std::to_string(e) + " has moved by " + std::to_string(offset) +
             " more than was asked for, before it was " + std::to_string(m.offset[e]);
    }
    m.offset[e] = offset;
  }
  return "";
}

}  // namespace riffle::sim
