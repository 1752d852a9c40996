#include "test/modes/mode_job.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "lab/simulation/sim_background.h"
#include "plugin/kernels/convert.h"
#include "plugin/kernels/float8_block.h"
#include "test/modes/job_plans.h"

namespace riffle::sim {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& numbers) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

constexpr float kUnwritten = -1e6F;  // what results are before

std::vector<float> input_of(const testing::JobCall& c, std::mt19937 values) {
  std::vector<float> data(c.count);
  for (float& x : data) {
    const float u = static_cast<float>(values()) * 0x1p-31F - 0.9F;
    x = u * u * u;
  }
  return data;
}

std::vector<float> sent_by(const NarrowRun& run, const NarrowSlot& slot, std::uint64_t valid) {
  std::vector<float> sent(valid);
  if (run.wire() == WireFormat::kBfloat16) {
    rules::widen(slot.send, DataType::kBfloat16, valid, sent.data());
  } else {
    unpack_float8(slot.send, valid, sent.data());
  }
  return sent;
}

// The mode's state of a staged call's elements, as it is posted or when it is over.
void snapshot(const testing::PostedCall& call, bool is_after, ModePart* part) {
  std::vector<float>& to = is_after ? part->after : part->before;
  const std::size_t position = call.staged.position;
  if (SparseRun* sparse = call.run->sparse()) {
    for (const SparseSegment& s : sparse->segments(position)) {
      to.insert(to.end(), s.state.residual.begin(), s.state.residual.end());
      part->among = s.places->node_at.size();
      if (is_after) part->outcomes.push_back(s.outcome);
    }
  } else if (NarrowRun* narrow = call.run->narrow()) {
    const float* const error = narrow->error(position);
    const std::uint64_t valid = call.run->position(position).piece.valid;
    to.assign(error, error + valid);
    if (!is_after) part->sent = sent_by(*narrow, *call.staged.narrow, valid);
  } else {
    const RelaxedRun::Position& p = call.run->position(position);
    to.assign(p.state, p.state + p.piece.valid);
  }
}

}  // namespace

// ------------------------------------------------------------------------------------------ nodes

struct ModeJob::Node final : private FrameSink {
  Node(ModeJob* all_nodes, int rank)
      : all(all_nodes),
        random(all->options_.seed * 100 + static_cast<std::uint64_t>(rank)),
        background(&all->network_, rank, [this] { return random() % 300'000; }),
        job(rank, all->setup(), &all->plans_) {}

  FrameSink* sink() { return this; }
  FrameSink& below() { return *job.session->sink(); }
  void opened(int peer) override { below().opened(peer); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return below().get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    if (h.type == FrameType::kControl && frame_of<ControlFrame>(h).kind == PlanSwitch::kModeKinds)
      all->switching(*this);
    below().arrived(peer, h, payload);
  }
  void sent(int peer, std::uint64_t cookie) override { below().sent(peer, cookie); }
  void departed(int peer) override { below().departed(peer); }
  void lost(int peer, const Status& why) override { below().lost(peer, why); }

  int rank() const { return job.rank; }
  std::string name() const { return "node " + std::to_string(rank()); }
  std::uint64_t term() const { return job.session->membership().term; }
  std::uint64_t broken_off() const { return job.calls->counts().broken_off; }

  ModeJob* const all;
  std::mt19937_64 random;
  SimBackground background;
  testing::JobNode job;
  std::deque<std::uint64_t> broken_before;  // broken_off() when each of those running was posted
  bool has_ended = false;
  std::string failure;
};

ModeJob::ModeJob(const Options& options)
    : options_(options),
      network_(setup().fabric(), {.seed = options_.seed,
                                  .jitter_ns = 100'000,
                                  .peer_timeout_ns = options_.peer_timeout_ns,
                                  .poisons = true}),
      plans_(setup().exact_plans()) {
  plans_.relaxed = testing::half_plans(options_.nodes);
  std::vector<int> all_nodes(options_.nodes);
  std::iota(all_nodes.begin(), all_nodes.end(), 0);
  sides_.insert(all_nodes);
  waiting_.assign(options_.faults.begin(), options_.faults.end());
  for (int r = 0; r < options_.nodes; ++r) make_node(r);
  for (auto& n : nodes_) n->job.start(&network_.mesh(n->rank()));
}

ModeJob::~ModeJob() {
  for (auto& n : nodes_) n->background.stop();
}

const std::string& ModeJob::failure(int r) const { return nodes_[r]->failure; }

testing::JobSetup ModeJob::setup() const {
  return {.nodes = options_.nodes,
          .rate_kbps = 1'000'000,
          .settings = options_.settings,
          .piece_bytes = 1024,
          .chunk_bytes = 6144,
          .network = options_.fabric};
}

void ModeJob::make_node(int r) {
  nodes_.push_back(std::make_unique<Node>(this, r));
  Node* const n = nodes_.back().get();
  SessionOptions& o = n->job.options;
  o.engine.has_blocks = false;
  o.connect_timeout_ns = 5'000'000'000;
  o.peer_timeout_ns = options_.peer_timeout_ns;
  o.survivors = options_.survivors;
  o.background = &n->background;
  SessionHooks& hooks = n->job.hooks;
  hooks.replan.count = [n] { return n->job.posted; };
  hooks.replan.relaxed_plans = [mode = options_.settings.mode](const Fabric& fabric, bool) {
    return mode == SyncMode::kSparse ? RelaxedPlans() : testing::half_plans(fabric.size());
  };
  hooks.replan.sparse_order = [this](const Fabric& fabric, const PlanSet&) {
    const auto nodes = static_cast<std::uint64_t>(fabric.size());
    const std::uint64_t teams = nodes % options_.sparse_teams == 0 ? options_.sparse_teams : 1;
    return Result<SparseOrder>(
        testing::sparse_order(fabric.size(), teams, false, options_.calls.size()));
  };
  hooks.connected = [this, n](const Status& s, const std::string&) {
    if (!s) return broken("connect: " + s.message());
    poll_later(*n);
  };
  hooks.failed = [n](const std::string& why) { n->failure = why; };
  hooks.went_on = [this, n](const LossRecord&, const std::string&) {
    sides_.insert(n->job.session->membership().nodes);
  };
  n->job.make_session(&network_.timers(r));
  network_.set_sink(r, n->sink());
}

// ----------------------------------------------------------------------------------------- faults

void ModeJob::strike(const ModeFault& f) {
  lost_.insert(f.node);
  if (f.kind == ModeFault::Kind::kCut) must_fail_.insert(f.node);
  lost_.insert(options_.without_quorum.begin(), options_.without_quorum.end());
  must_fail_.insert(options_.without_quorum.begin(), options_.without_quorum.end());
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

void ModeJob::arm(const ModeFault& f) {
  network_.at(network_.now_ns() + f.delay_ns, [this, f] { strike(f); });
}

// One at a time: the next one waits for the next agreement.
void ModeJob::switching(const Node& n) {
  if (in_switch_.empty()) return;
  if (n.rank() != n.job.session->membership().nodes.back()) return;  // it hears late
  arm(in_switch_.front());
  in_switch_.pop_front();
  ++faults_in_switches;
}

// ------------------------------------------------------------------------------------------- job

void ModeJob::poll_later(Node& n) {
  const auto rank = static_cast<std::size_t>(n.rank());
  const std::uint64_t delay_ns = options_.delay_ns.empty() ? 0 : options_.delay_ns[rank];
  const std::uint64_t wait_ns = 50'000 + n.random() % 100'000 + delay_ns;
  network_.timers(n.rank()).call_at(network_.now_ns() + wait_ns, [this, &n] { poll(n); });
}

void ModeJob::poll(Node& n) {
  take_results(n);
  if (!n.failure.empty()) return;
  if (n.job.step < static_cast<std::uint64_t>(options_.steps) && n.job.running.size() < 4) post(n);
  if (!has_all(n)) return poll_later(n);
  if (options_.close_ns.empty()) return;
  const std::uint64_t wait_ns = options_.close_ns[static_cast<std::size_t>(n.rank())];
  network_.timers(n.rank()).call_at(network_.now_ns() + wait_ns, [this, &n] { close(n); });
}

// As Communicator::close().
void ModeJob::close(Node& n) {
  n.job.calls->fence();
  closed_early += std::ranges::any_of(
      nodes_, [&](const auto& other) { return survives(other->rank()) && !has_all(*other); });
  if (options_.exit_ns > 0) {
    network_.at(network_.now_ns() + options_.exit_ns, [this, &n] {
      cut_off += !n.has_ended;
      n.has_ended = true;
      network_.kill(n.rank());
    });
  }
  const std::uint64_t closed_ns = network_.now_ns();
  if (!n.job.session->retire([this, &n, closed_ns] {
        cut_off += network_.now_ns() - closed_ns >= options_.peer_timeout_ns;
        end(n);
      })) {
    return end(n);
  }
  ++lingered;
}

void ModeJob::end(Node& n) {
  n.has_ended = true;
  if (n.job.session->end()) {
    network_.close(n.rank());
  } else {
    broken(n.name() + " does not end well");
    network_.mesh(n.rank()).abort();
  }
  n.background.stop();
}

bool ModeJob::has_all(const Node& n) const {
  return n.job.step == static_cast<std::uint64_t>(options_.steps) && n.job.running.empty();
}

bool ModeJob::is_through(const Node& n) const {
  if (!survives(n.rank())) return !must_fail_.contains(n.rank()) || !n.failure.empty();
  return options_.close_ns.empty() ? has_all(n) : n.has_ended;
}

// A new call's memory, and what it holds.
void ModeJob::prepare(Node& n, ModeOutcome* outcome) {
  testing::PostedCall& call = *n.job.next;
  outcome->call = options_.calls[call.index];
  outcome->is_unknown = options_.unknown_steps.contains(call.step);
  outcome->parts.resize(options_.nodes);
  std::vector<float> input =
      input_of(outcome->call, testing::values_of(n.rank(), call.step, call.index));
  call.recv = bytes_of(input);
  if (options_.is_in_place) {
    call.kept = call.recv;
  } else {
    call.send = bytes_of(input);
    call.recv = bytes_of(std::vector<float>(outcome->call.count, kUnwritten));
  }
  outcome->parts[n.rank()].input = std::move(input);
}

void ModeJob::post(Node& n) {
  while (!waiting_.empty() && n.job.step >= waiting_.front().step) {
    const ModeFault f = waiting_.front();
    waiting_.pop_front();
    f.is_in_switch ? in_switch_.push_back(f) : arm(f);
  }
  ModeOutcome& outcome = outcomes_[{n.job.step, n.job.index}];
  if (n.job.prepare()) prepare(n, &outcome);
  const std::uint64_t broken_before = n.broken_off();
  CallIdentity identity = testing::identity_of(outcome.call, n.job.step);
  if (outcome.is_unknown) identity = {};
  if (!n.job.post(identity, options_.calls.size())) return;
  n.broken_before.push_back(broken_before);
  const testing::PostedCall& call = *n.job.running.back();
  ModePart& part = outcome.parts[n.rank()];
  part.is_posted = true;
  part.term = n.term();
  part.is_staged = call.is_staged;
  if (call.is_staged) {
    part.is_full = call.staged.is_full;
    outcome.mode = call.run->mode();
    const std::size_t position = call.staged.position;
    SparseRun* const sparse = call.run->sparse();
    outcome.segment = sparse != nullptr ? sparse->segments(position)[0].elements
                                        : call.run->position(position).segment_elements;
    snapshot(call, false, &part);
  } else if (!call.staged.input.empty()) {  // with residuals of a mode that has ended
    part.input = floats_of(call.staged.input);
  }
}

void ModeJob::take_results(Node& n) {
  while (!n.job.running.empty()) {
    testing::PostedCall& call = *n.job.running.front();
    const Result<bool> is_over = n.job.is_over(&call);
    if (!is_over) {
      if (survives(n.rank())) broken(n.name() + ": a call failed: " + is_over.status().message());
      if (n.failure.empty()) n.failure = is_over.status().message();
      return;
    }
    if (!*is_over) return;
    ModePart& part = outcomes_.at({call.step, call.index}).parts[n.rank()];
    part.is_done = true;
    part.output = floats_of(call.recv);
    if (outcomes_.at({call.step, call.index}).is_unknown &&
        std::ranges::count(part.output, kUnwritten) > 0) {
      broken(n.name() + ": elements of step " + std::to_string(call.step) + " were not summed");
    }
    if (call.is_staged) {
      snapshot(call, true, &part);
      part.broken = n.broken_off() - n.broken_before.front();
    }
    n.broken_before.pop_front();
    n.job.running.pop_front();
  }
}

std::string ModeJob::run() {
  constexpr std::uint64_t kLongestNs = 20'000'000'000;
  const auto is_over = [this] {
    return std::ranges::all_of(nodes_, [this](const auto& n) { return is_through(*n); });
  };
  while (broken_.empty() && !is_over()) {
    if (!network_.step()) return "nothing moves";
    if (network_.now_ns() > kLongestNs) return "it does not end:" + where();
    for (const auto& n : nodes_) {
      if (survives(n->rank()) && !n->failure.empty()) return n->name() + ": " + n->failure;
    }
  }
  terms = static_cast<int>(sides_.size());
  return broken_.empty() ? check() : broken_;
}

// Where everybody is.
std::string ModeJob::where() const {
  std::string where;
  for (const auto& n : nodes_) {
    where += " " + n->name() + " at " + std::to_string(n->job.step) + "." +
             std::to_string(n->job.index) + (n->failure.empty() ? "" : " (" + n->failure + ")");
  }
  return where;
}

std::string ModeJob::check() {
  std::uint64_t latest = 0;
  for (const auto& n : nodes_) {
    if (survives(n->rank())) latest = std::max(latest, n->term());
  }
  if (static_cast<int>(lost_.size()) == options_.nodes) return "";
  ModeChecks checks({.nodes = options_.nodes,
                     .settings = options_.settings,
                     .rescales = options_.survivors.rescales,
                     .lost = lost_,
                     .sides = sides_,
                     .latest_term = latest},
                    this);
  for (const auto& [key, outcome] : outcomes_) {
    if (std::string e = checks.check(outcome, key.second); !e.empty()) {
      return e + " in step " + std::to_string(key.first) + ", call " + std::to_string(key.second);
    }
  }
  return "";
}

}  // namespace riffle::sim
