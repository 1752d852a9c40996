// Replanning from end to end in one process: eight sessions on a network that reorders every frame,
// whose links report made-up traffic. A neighbour takes 3/4 of one node's link and leaves again:
// the plan follows both times, with collectives in flight, every sum stays exact, and nobody waits.
#include "plugin/collective/adapt/replanner.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "lab/memory/memory_network.h"
#include "plugin/collective/session.h"
#include "test/manual_clock.h"
#include "test/modes/job_plans.h"
#include "test/plugin/collective/adapt/told_calls.h"

namespace riffle::replanner_test {
namespace {

using testing::ClockMesh;
using testing::ManualClock;

constexpr int kNodes = 8;
constexpr int kSlow = 3;
constexpr std::int64_t kRateKbps = 400'000;

// A mesh of the network with a clock and with links that claim to have carried something.
class BusyMesh final : public ClockMesh {
 public:
  BusyMesh(Mesh& mesh, const ManualClock& clock, const bool& contended, const bool& has_others)
      : ClockMesh(mesh, clock),
        contended_(contended),
        has_others_(has_others),
        seen_ns_(mesh.size(), 0),
        activity_(mesh.size()) {}
  LinkActivity activity(int peer) override {
    const std::uint64_t ns = now_ns() - std::exchange(seen_ns_[peer], now_ns());
    const bool is_slow = contended_ && rank() == kSlow;
    const bool is_limit = contended_ ? is_slow : true;
    const double kbps = contended_ ? kRateKbps / 4 : kRateKbps;
    const auto bytes = static_cast<std::uint64_t>(kbps * 1448 / 1514 / 8e6 / (kNodes - 1) *
                                                  static_cast<double>(ns));
    LinkActivity& a = activity_[peer];
    a.out_bytes += bytes;
    a.in_bytes += bytes;
    a.busy_ns += is_limit || (contended_ && peer == kSlow) ? ns : 0;
    a.of_peer.receiver_is_slow = is_slow;
    return a;
  }
  NicBytes others_on_nics() override {
    return has_others_ ? NicBytes{now_ns(), now_ns()} : NicBytes{};
  }

 private:
  const bool& contended_;
  const bool& has_others_;
  std::vector<std::uint64_t> seen_ns_;
  std::vector<LinkActivity> activity_;
};

class Recorder final : public ReplanObserver {
 public:
  void on_replan(const ReplanEvent& event) override { events.push_back(event); }
  std::vector<ReplanEvent> changes() const {
    std::vector<ReplanEvent> list;
    for (const ReplanEvent& e : events) {
      if (e.kind == ReplanEvent::Kind::kPlanChange) list.push_back(e);
    }
    return list;
  }
  std::vector<ReplanEvent> events;
};

// What the jobs sum, and how fast the network moves a frame.
struct Sums {
  std::size_t elements = 1500;
  std::size_t piece_bytes = 256, chunk_bytes = 2048;
  std::uint64_t step_ns = 200'000;
};

class Cluster {
 public:
  // `mode`: its groups are others where a node is slow.
  Cluster(std::uint64_t seed, std::uint64_t every, const Sums& sums = {},
          SyncMode mode = SyncMode::kExact)
      : step_ns(sums.step_ns), elements_(sums.elements), random_(seed), network_(kNodes, seed) {
    first_plans = plan(even_fabric(kNodes, kRateKbps), 32 << 20, {})->plans;
    const bool has_groups = !is_same_on_all_nodes(mode);
    if (has_groups) first_plans.relaxed = testing::grid_plans();
    for (int r = 0; r < kNodes; ++r) {
      auto node = std::make_unique<Node>(network_.mesh(r), clock_, contended, has_others);
      SessionOptions options;
      options.engine.piece_bytes = sums.piece_bytes;
      options.engine.chunk_bytes = sums.chunk_bytes;
      options.replan.collectives = every;
      options.replan.shortest_ns = 0;
      options.background = &node->background;
      SessionHooks hooks;
      hooks.decide = [this](const std::vector<NodeReport>&) {
        Verdict v;
        v.plans = encode(first_plans);
        v.digest = digest(first_plans);
        return v;
      };
      hooks.basis = [] { return PlanBasis{even_fabric(kNodes, kRateKbps), false}; };
      hooks.replan.count = [this] { return posted_[0]; };
      if (has_groups) {
        const auto suited = [](const Fabric& f) {
          return f.nodes[kSlow].out_kbps < kRateKbps / 2 ? testing::half_plans(kNodes)
                                                         : testing::grid_plans();
        };
        hooks.replan.relaxed_plans = [suited](const Fabric& f, bool) { return suited(f); };
        hooks.replan.step_us = [suited](const Fabric& f, const RelaxedPlans& plans) {
          const bool is_slow = f.nodes[kSlow].out_kbps < kRateKbps / 2;
          return (is_slow ? 6 : 2) * (plans == suited(f) ? 1 : 1.5);
        };
        options.replan.mode = mode;
        hooks.replan.participant = &node->calls;
      }
      hooks.replan.observer = r == 0 ? &recorder : nullptr;
      hooks.connected = [this](const Status& s, const std::string&) { connected_ += s.is_ok(); };
      hooks.failed = [this](const std::string& why) { failure = why; };
      node->session = std::make_unique<Session>(r, kNodes, options, &clock_, std::move(hooks));
      network_.set_sink(r, node->session->sink());
      nodes_.push_back(std::move(node));
    }
    for (int r = 0; r < kNodes; ++r) {
      NodeReport report;
      report.rank = r;
      nodes_[r]->session->start(&nodes_[r]->mesh, report);
    }
    while (connected_ < kNodes && network_.step()) {
    }
  }
  ~Cluster() {
    for (auto& node : nodes_) node->session->end();
  }

  // So many all-reduces, each posted at some moment after the one before it is done on that node.
  // The answer is the first wrong thing.
  std::string run(int collectives) {
    if (connected_ < kNodes) return "not connected";
    const std::uint64_t last = posted_[0] + static_cast<std::uint64_t>(collectives);
    std::uint64_t idle_steps = 0;
    while (true) {
      bool all_done = true;
      for (int r = 0; r < kNodes; ++r) {
        Node& n = *nodes_[r];
        if (n.operation.state == Operation::State::kRunning) {
          all_done = false;
          continue;
        }
        if (n.operation.state == Operation::State::kDone && !n.checked) {
          n.checked = true;
          for (std::size_t i = 0; i < n.data.size(); ++i) {
            if (n.data[i] != static_cast<std::int32_t>(kNodes * posted_[r] + i * 36)) {
              return "wrong sum on node " + std::to_string(r);
            }
          }
        }
        if (posted_[r] == last) continue;
        all_done = false;
        if (random_() % 20 == 0) post(r);
      }
      if (all_done) return failure;
      const bool moved = network_.step();
      clock_.advance(step_ns);
      if (!failure.empty()) return failure;
      idle_steps = moved ? 0 : idle_steps + 1;
      if (idle_steps > 10000) return "nothing moves";
    }
  }

  // From the next replanning interval on.
  void run_mode() {
    for (auto& node : nodes_) node->calls.now.relaxed_nodes = 1;
  }

  std::uint64_t step_ns;
  bool contended = false, has_others = false;
  PlanSet first_plans;
  Recorder recorder;
  std::string failure;

 private:
  struct Node {
    Node(Mesh& inner, const ManualClock& clock, const bool& contended, const bool& has_others)
        : mesh(inner, clock, contended, has_others) {}
    BusyMesh mesh;
    InlineBackground background;
    testing::ToldCalls calls;
    std::unique_ptr<Session> session;
    std::vector<std::int32_t> data;
    Operation operation;
    bool checked = true;
  };
  void post(int r) {
    Node& n = *nodes_[r];
    ++posted_[r];
    n.data.assign(elements_, 0);
    for (std::size_t i = 0; i < n.data.size(); ++i) {
      n.data[i] = static_cast<std::int32_t>(posted_[r] + i * static_cast<std::size_t>(r + 1));
    }
    n.operation.type = DataType::kInt32;
    n.operation.count = n.data.size();
    n.operation.recv = reinterpret_cast<std::byte*>(n.data.data());
    n.operation.send = n.operation.recv;
    n.operation.state = Operation::State::kRunning;
    n.checked = false;
    n.session->submit(&n.operation);
  }

  const std::size_t elements_;
  std::mt19937_64 random_;
  ManualClock clock_;
  MemoryNetwork network_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::array<std::uint64_t, kNodes> posted_{};
  int connected_ = 0;
};

TEST(Intervals, ThePlanFollowsANeighbourThatComesAndGoes) {
  Cluster cluster(1, 4);
  ASSERT_EQ(cluster.run(20), "");
  EXPECT_TRUE(cluster.recorder.changes().empty());
  EXPECT_GE(cluster.recorder.events.size(), 3u);

  cluster.contended = true;
  ASSERT_EQ(cluster.run(20), "");
  std::vector<ReplanEvent> changes = cluster.recorder.changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].cause, "node 3 now sends and receives 100 Mbit/s, was 400");
  EXPECT_LT(changes[0].time_us, 0.7 * changes[0].former_time_us);
  EXPECT_EQ(changes[0].trigger, ReplanEvent::Trigger::kRates);
  EXPECT_EQ(changes[0].planned_bytes, ReplanOptions().planned_bytes);

  cluster.contended = false;
  ASSERT_EQ(cluster.run(20), "");
  changes = cluster.recorder.changes();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[1].generation, 2u);
  EXPECT_EQ(changes[1].fabric.nodes[kSlow].out_kbps, kRateKbps);
}

// Of which the way back is tried after a pause only, as what they do not use may only seem faster.
TEST(Intervals, SoDoTheGroupsOfRelaxedModes) {
  constexpr int kEvery = 4;
  for (const bool runs : {false, true}) {
    Cluster cluster(1, kEvery, {}, SyncMode::kDsSync);
    if (runs) cluster.run_mode();
    ASSERT_EQ(cluster.run(20), "");
    EXPECT_TRUE(cluster.recorder.changes().empty());
    for (const bool contended : {true, false}) {
      cluster.contended = contended;
      const std::size_t before = cluster.recorder.changes().size();
      int intervals = 0;
      while (cluster.recorder.changes().size() == before && ++intervals < 20) {
        ASSERT_EQ(cluster.run(kEvery), "");
      }
      ASSERT_GT(cluster.recorder.changes().size(), before);
      EXPECT_EQ(intervals >= Hysteresis::kQuickIntervals, runs && !contended) << intervals;
      const ReplanEvent last = cluster.recorder.changes().back();
      PlanSet plans = plan(last.fabric, ReplanOptions().planned_bytes, {})->plans;
      plans.relaxed = contended ? testing::half_plans(kNodes) : testing::grid_plans();
      EXPECT_EQ(last.digest, digest(plans)) << runs << contended;
    }
  }
}

// Behind short queues a node's own traffic shows all kinds of rates. Sums of 1 MiB are too short to
// judge predictions by, but long enough to tell that nothing has become slower.
TEST(Intervals, NoRateIsReasonForAnotherPlanWhileSumsTakeNoLonger) {
  constexpr std::uint64_t kPaceNs = 10'000;
  Cluster cluster(4, 8, {(1 << 20) / sizeof(std::int32_t), 8 << 10, 64 << 10, kPaceNs});
  ASSERT_EQ(cluster.run(24), "");
  cluster.contended = true;
  ASSERT_EQ(cluster.run(48), "");
  EXPECT_GE(cluster.recorder.events.size(), 8u);
  EXPECT_TRUE(cluster.recorder.changes().empty()) << cluster.recorder.changes().front().cause;

  cluster.step_ns = 4 * kPaceNs;
  ASSERT_EQ(cluster.run(48), "");
  ASSERT_FALSE(cluster.recorder.changes().empty()) << "now they do";
  EXPECT_EQ(cluster.recorder.changes().front().cause,
            "node 3 now sends and receives 100 Mbit/s, was 400");
}

TEST(Intervals, RatesBesideOthersTrafficAreRough) {
  for (const bool has_others : {false, true}) {
    Cluster cluster(5, 4);
    cluster.has_others = has_others;
    ASSERT_EQ(cluster.run(20), "");
    ASSERT_FALSE(cluster.recorder.events.empty());
    for (const ReplanEvent& e : cluster.recorder.events) {
      for (const probe::PassiveReport& r : e.reports) EXPECT_EQ(r.is_rough, has_others);
    }
  }
}

TEST(Intervals, AnEvenNetworkKeepsItsPlanAndAFrozenOneHasNoIntervals) {
  Cluster even(2, 2);
  ASSERT_EQ(even.run(60), "");
  EXPECT_TRUE(even.recorder.changes().empty());
  EXPECT_GE(even.recorder.events.size(), 10u);

  Cluster frozen(3, 0);
  frozen.contended = true;
  ASSERT_EQ(frozen.run(30), "");
  EXPECT_TRUE(frozen.recorder.events.empty());
}

}  // namespace
}  // namespace riffle::replanner_test
