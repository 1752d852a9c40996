// Nodes are lost while a communicator connects: killed, stopped or cut off (nothing passes, nobody
// hears of it), one or two of eight, at every moment of connect. Every survivor returns from
// connect, in time and all with the same outcome: an error that names who was lost and nobody else,
// or, if the fault came behind the decision, success, and then what RIFFLE_ON_LOSS says.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lab/simulation/sim_background.h"
#include "plugin/transport/base/mesh.h"
#include "plugin/transport/sim/sim_network.h"
#include "test/blamed_nodes.h"
#include "test/modes/job_call.h"
#include "test/modes/job_node.h"
#include "test/modes/job_plans.h"
#include "topology/base/time.h"

namespace riffle::sim::connect_losses_test {
namespace {

constexpr int kNodes = 8;
constexpr int kSteps = 2;  // of the job, when it is connected
constexpr std::uint64_t kGraceNs = kSecond / 2;
constexpr std::uint64_t kMarginNs = kSecond / 10;

enum class Kind { kKill, kStop, kIsolate };

struct Case {
  Kind kind = Kind::kKill;
  std::vector<int> victims;
  std::uint64_t moment = 0;  // before the event of this number
  SyncMode mode = SyncMode::kExact;
  bool survives = false;  // RIFFLE_ON_LOSS=continue
  bool probes = false;
  bool opens_patiently = true;
  std::uint64_t seed = 1;

  std::uint64_t timeout_ns() const { return (probes ? 8 : 2) * kSecond; }
  std::string text() const {
    std::string who;
    for (const int v : victims) who += " " + std::to_string(v);
    static const char* const kKinds[] = {"killed", "stopped", "cut off"};
    return "nodes" + who + " " + kKinds[static_cast<int>(kind)] + " at event " +
           std::to_string(moment) + ", mode " + std::to_string(static_cast<int>(mode)) +
           (survives ? ", on loss continue" : "") + (probes ? ", probing" : "") +
           (opens_patiently ? "" : ", impatient") + ", seed " + std::to_string(seed);
  }
};

class ConnectJob {
 public:
  explicit ConnectJob(const Case& c)
      : case_(c),
        network_(even_fabric(kNodes, 1'000'000), {.seed = c.seed,
                                                  .jitter_ns = c.seed == 1 ? 0u : 100'000u,
                                                  .tick_ns = c.probes ? 20'000u : 1u,
                                                  .peer_timeout_ns = c.timeout_ns(),
                                                  .opens_patiently = c.opens_patiently}),
        plans_(setup().exact_plans()) {
    plans_.relaxed = testing::half_plans(kNodes);
    network_.carry_only([](const FrameHeader& header) {
      return header.type != FrameType::kProbe ||
             frame_of<ProbeFrame>(header).step != ProbeFrame::kData;
    });
    for (int r = 0; r < kNodes; ++r) make(r);
    for (auto& n : nodes_) n->job.start(&network_.mesh(n->job.rank));
  }
  ~ConnectJob() {
    for (auto& n : nodes_) n->background.stop();
  }

  // How many events connect takes when nothing happens.
  std::uint64_t events_until_connected() {
    std::uint64_t events = 0;
    const auto is_connected = [](const auto& n) { return n->outcome.has_value(); };
    while (!std::ranges::all_of(nodes_, is_connected) && network_.step()) ++events;
    return events;
  }

  // The first wrong thing, or empty.
  std::string run() {
    for (std::uint64_t event = 0; event < case_.moment && network_.step(); ++event) {
    }
    fault_ns_ = network_.now_ns();
    for (const int v : case_.victims) strike(v);
    const std::uint64_t end_ns = fault_ns_ + 3 * case_.timeout_ns() + 10 * kSecond;
    while (!is_over()) {
      if (!network_.step()) return "nothing moves";
      if (network_.now_ns() > end_ns) return "it does not end";
    }
    return check();
  }
  bool has_connected() const { return connected_; }

 private:
  struct Node final : FrameSink {
    Node(ConnectJob* job_of, int rank)
        : background(&job_of->network_, rank, [] { return 100'000; }),
          job(rank, job_of->setup(), &job_of->plans_) {}
    FrameSink& below() { return *job.session->sink(); }
    void opened(int peer) override { below().opened(peer); }
    Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
      return below().get_receive_buffer(peer, h);
    }
    void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
      below().arrived(peer, h, payload);
    }
    void sent(int peer, std::uint64_t cookie) override { below().sent(peer, cookie); }
    void departed(int peer) override { below().departed(peer); }
    void lost(int peer, const Status& why) override { below().lost(peer, why); }

    SimBackground background;
    testing::JobNode job;
    std::optional<Status> outcome;
    std::uint64_t outcome_ns = 0;
    std::string failure;
    std::uint64_t failure_ns = 0;
    bool has_all = false, is_over = false;
  };

  testing::JobSetup setup() const {
    SyncSettings settings{.mode = case_.mode,
                          .full_every = 7,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096,
                          .survives_losses = case_.survives};
    return {.nodes = kNodes,
            .rate_kbps = 1'000'000,
            .settings = settings,
            .piece_bytes = 1024,
            .chunk_bytes = 6144};
  }

  void make(int r) {
    nodes_.push_back(std::make_unique<Node>(this, r));
    Node* const n = nodes_.back().get();
    SessionOptions& o = n->job.options;
    o.engine.has_blocks = false;
    o.connect_timeout_ns = o.peer_timeout_ns = case_.timeout_ns();
    o.survivors.is_on = case_.survives;
    o.background = &n->background;
    SessionHooks& hooks = n->job.hooks;
    hooks.wants_probe = [this](const std::vector<NodeReport>&, probe::KnownRacks*) {
      return case_.probes;
    };
    hooks.probed = [](const std::vector<NodeReport>&, const ProbeOutcome&) {};
    hooks.replan.count = [n] { return n->job.posted; };
    hooks.replan.relaxed_plans = [](const Fabric& fabric, bool) {
      return testing::half_plans(fabric.size());
    };
    hooks.connected = [this, n](const Status& outcome, const std::string&) {
      if (n->outcome) broken_ = name(*n) + ": connect ended twice";
      n->outcome = outcome;
      n->outcome_ns = network_.now_ns();
      outcome ? poll_later(*n) : end_later(*n);
    };
    hooks.failed = [this, n](const std::string& why) {
      if (!n->failure.empty()) broken_ = name(*n) + " failed twice";
      n->failure = why;
      n->failure_ns = network_.now_ns();
      end_later(*n);
    };
    hooks.went_on = [](const LossRecord&, const std::string&) {};
    n->job.make_session(&network_.timers(r));
    network_.set_sink(r, n);
  }

  void strike(int victim) {
    switch (case_.kind) {
      case Kind::kKill:
        return network_.kill(victim);
      case Kind::kStop:
        return network_.stop(victim);
      case Kind::kIsolate:
        return network_.isolate(victim);
    }
  }

  // The job: a few calls, one after the other.
  void poll_later(Node& n) {
    network_.timers(n.job.rank).call_at(network_.now_ns() + 1'000'000, [this, &n] { poll(n); });
  }
  void poll(Node& n) {
    if (!n.failure.empty()) return;
    while (!n.job.running.empty()) {
      const Result<bool> is_done = n.job.is_over(n.job.running.front().get());
      if (!is_done) return;  // hooks.failed has said so
      if (!*is_done) return poll_later(n);
      n.job.running.pop_front();
    }
    const std::vector<testing::JobCall> calls = testing::usual_calls();
    if (n.job.step == kSteps) {
      n.has_all = true;
      return end_later(n);
    }
    const testing::JobCall& call = calls[n.job.index];
    if (n.job.prepare()) {
      n.job.next->send.resize(call.count * sizeof(float));
      n.job.next->recv.resize(call.count * sizeof(float));
    }
    (void)n.job.post(testing::identity_of(call, n.job.step), calls.size());
    poll_later(n);
  }
  // Soon, as a job does that has nothing to go on with: others may not have heard the reason yet.
  void end_later(Node& n) {
    const std::uint64_t when_ns = network_.now_ns() + 100'000 * (n.job.rank % 3);
    network_.timers(n.job.rank).call_at(when_ns, [this, &n] {
      if (std::exchange(n.is_over, true)) return;
      if (n.job.session->end()) {
        network_.close(n.job.rank);
      } else {
        network_.mesh(n.job.rank).abort();
      }
      n.background.stop();
    });
  }

  static std::string name(const Node& n) { return "node " + std::to_string(n.job.rank); }
  bool is_victim(const Node& n) const {
    return std::ranges::find(case_.victims, n.job.rank) != case_.victims.end();
  }
  bool lives(const Node& n) const { return !is_victim(n) || case_.kind == Kind::kIsolate; }
  bool is_over() const {
    return !broken_.empty() ||
           std::ranges::all_of(nodes_, [this](const auto& n) { return n->is_over || !lives(*n); });
  }
  // Does it name victims, and only them?
  std::string misnames(const std::string& text) const {
    const std::set<int> named = blamed_in(text);
    if (named.empty()) return "names nobody: ";
    for (const int node : named) {
      if (std::ranges::find(case_.victims, node) == case_.victims.end()) return "blames others: ";
    }
    return "";
  }

  std::string check() {
    if (!broken_.empty()) return broken_;
    int succeeded = 0, failed = 0;
    std::string all;
    for (const auto& n : nodes_) {
      if (!lives(*n)) continue;
      all += "\n  " + name(*n) + ": " +
             (*n->outcome ? "connected; " + n->failure : n->outcome->message());
      if (n->outcome_ns > case_.timeout_ns() + kGraceNs + kMarginNs) {
        return name(*n) + " returns after " + std::to_string(n->outcome_ns / 1'000'000) + " ms";
      }
      if (is_victim(*n)) continue;
      (*n->outcome ? succeeded : failed) += 1;
    }
    connected_ = succeeded > 0;
    if (succeeded > 0 && failed > 0) return "outcomes differ:" + all;
    for (const auto& n : nodes_) {
      if (is_victim(*n)) continue;
      const std::string& error = *n->outcome ? n->failure : n->outcome->message();
      if (error.empty() != n->has_all) return name(*n) + " has no error and not all results";
      if (case_.survives && *n->outcome && !error.empty()) return "does not go on:" + all;
      if (error.empty()) continue;
      const std::string wrong = misnames(error);
      if (!wrong.empty()) return name(*n) + " " + wrong + error + all;
      const std::uint64_t late_ns = fault_ns_ + case_.timeout_ns() + kSecond;
      if (*n->outcome && n->failure_ns > late_ns) return name(*n) + " fails late: " + error;
    }
    return "";
  }

  const Case case_;
  SimNetwork network_;
  PlanSet plans_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::uint64_t fault_ns_ = 0;
  bool connected_ = false;
  std::string broken_;
};

struct Count {
  int runs = 0, connected = 0;
};

// Every `step`th moment from the first event to some time after connect.
Count sweep(Case c, std::uint64_t first, std::uint64_t step) {
  Count count;
  Case undisturbed = c;
  undisturbed.victims.clear();
  const std::uint64_t events = ConnectJob(undisturbed).events_until_connected();
  for (c.moment = first; c.moment < events + 20; c.moment += step) {
    ConnectJob job(c);
    const std::string wrong = job.run();
    EXPECT_EQ(wrong, "") << c.text() << " of " << events;
    ++count.runs;
    count.connected += job.has_connected();
    if (!wrong.empty()) break;
  }
  return count;
}

class ConnectLosses : public ::testing::TestWithParam<Kind> {};

TEST_P(ConnectLosses, OneOfEightAtAnyMoment) {
  Count all;
  for (int victim = 0; victim < kNodes; ++victim) {
    for (const bool survives : {false, true}) {
      // (Of stops and cuts every third moment each, another one for the next node.)
      const std::uint64_t step = GetParam() == Kind::kKill ? 1 : 3;
      const Count n = sweep({.kind = GetParam(), .victims = {victim}, .survives = survives},
                            static_cast<std::uint64_t>(victim) % step, step);
      all.runs += n.runs;
      all.connected += n.connected;
    }
  }
  std::printf("%d moments, %d times all others were connected\n", all.runs, all.connected);
  EXPECT_GT(all.connected, all.runs / 5);
  EXPECT_LT(all.connected, all.runs * 4 / 5);
}

TEST_P(ConnectLosses, TwoOfEight) {
  Count all;
  for (int a = 0; a < kNodes; ++a) {
    for (int b = 0; b < a; ++b) {
      const auto pair = static_cast<std::uint64_t>(a * kNodes + b);
      const Count n =
          sweep({.kind = GetParam(), .victims = {a, b}, .survives = pair % 2 == 0}, pair % 5, 5);
      all.runs += n.runs;
      all.connected += n.connected;
    }
  }
  std::printf("%d moments, %d times all others were connected\n", all.runs, all.connected);
}

// Other orders of what happens at the same time; links to who is gone that fail at once; modes.
TEST_P(ConnectLosses, InOtherWays) {
  for (int victim = 0; victim < kNodes; ++victim) {
    const auto v = static_cast<std::uint64_t>(victim);
    (void)sweep({.kind = GetParam(), .victims = {victim}, .opens_patiently = false}, v % 3, 3);
    (void)sweep({.kind = GetParam(), .victims = {victim}, .survives = true, .seed = v + 2}, v % 3,
                3);
    for (const bool survives : {false, true}) {
      (void)sweep({.kind = GetParam(),
                   .victims = {victim},
                   .mode = SyncMode::kDsSync,
                   .survives = survives},
                  v % 3, 3);
    }
  }
}

TEST_P(ConnectLosses, WhileProbing) {
  for (int victim = 0; victim < kNodes; ++victim) {
    const auto v = static_cast<std::uint64_t>(victim);
    (void)sweep(
        {.kind = GetParam(), .victims = {victim}, .survives = victim % 2 == 0, .probes = true},
        1000 * v, 7919);
  }
}

std::string name_of(const ::testing::TestParamInfo<Kind>& kind) {
  static const char* const kNames[] = {"Killed", "Stopped", "CutOff"};
  return kNames[static_cast<int>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(Kinds, ConnectLosses,
                         ::testing::Values(Kind::kKill, Kind::kStop, Kind::kIsolate), name_of);

}  // namespace
}  // namespace riffle::sim::connect_losses_test
