// Probing between nodes: every round runs to its end on every node, and whatever goes wrong only
// means that less is known.
#include "plugin/collective/connect/prober.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "lab/memory/memory_network.h"
#include "plugin/transport/base/mesh.h"

namespace riffle::prober_test {
namespace {

// Timers that run when the test says so.
class Timers final : public TimerService {
 public:
  std::uint64_t call_at(std::uint64_t when_ns, std::function<void()> f) override {
    calls_[++last_] = {when_ns, std::move(f)};
    return last_;
  }
  void cancel(std::uint64_t timer) override { calls_.erase(timer); }
  void run_all() {
    for (auto& [id, call] : std::exchange(calls_, {})) call.second();
  }
  void run_first() { run(std::min_element(calls_.begin(), calls_.end(), is_earlier)); }
  void run_last() { run(std::max_element(calls_.begin(), calls_.end(), is_earlier)); }
  bool empty() const { return calls_.empty(); }

 private:
  using Calls = std::map<std::uint64_t, std::pair<std::uint64_t, std::function<void()>>>;
  static bool is_earlier(const Calls::value_type& a, const Calls::value_type& b) {
    return a.second.first < b.second.first;
  }
  void run(Calls::iterator call) {
    const auto f = std::move(call->second.second);
    calls_.erase(call);
    f();
  }
  std::uint64_t last_ = 0;
  Calls calls_;
};

struct Node final : FrameSink {
  explicit Node(Mesh* mesh, ProbeTurns turns = {}) : prober(mesh, &timers, std::move(turns)) {}
  void opened(int peer) override { prober.opened(peer); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return prober.get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    if (!is_deaf) prober.arrived(peer, h, payload);
  }
  void sent(int peer, std::uint64_t cookie) override { prober.sent(peer, cookie); }
  void departed(int) override {}
  void lost(int peer, const Status& why) override {
    ADD_FAILURE() << "lost " << peer << ": " << why.message();
  }

  Timers timers;
  Prober prober;
  bool is_deaf = false;
};

struct Cluster {
  Cluster(int nodes, std::uint64_t seed, const std::function<ProbeTurns(int)>& turns = nullptr)
      : network(nodes, seed) {
    for (int r = 0; r < nodes; ++r) {
      all.push_back(std::make_unique<Node>(&network.mesh(r), turns ? turns(r) : ProbeTurns()));
      network.set_sink(r, all.back().get());
    }
  }
  void survey() {
    all[0]->prober.survey({}, 1'000'000'000, 1'000'000'000, [this](const ProbeOutcome& o) {
      EXPECT_FALSE(outcome.has_value()) << "told twice";
      outcome = o;
    });
  }
  void run() {
    while (network.step()) {
    }
  }
  MemoryNetwork network;
  std::vector<std::unique_ptr<Node>> all;
  std::optional<ProbeOutcome> outcome;
};

TEST(Prober, EveryRoundRunsToItsEndWhateverOvertakesWhat) {
  for (const int nodes : {2, 3, 5}) {
    Cluster cluster(nodes, static_cast<std::uint64_t>(nodes));
    cluster.survey();
    cluster.run();
    ASSERT_TRUE(cluster.outcome.has_value()) << nodes;
    EXPECT_EQ(cluster.outcome->trouble, "");
    EXPECT_GE(cluster.outcome->findings.rounds, nodes - 1);
    EXPECT_GT(cluster.outcome->bytes, 0u);
    EXPECT_TRUE(cluster.all[0]->timers.empty());
  }
}

TEST(Prober, ASilentNodeCostsTheBudgetAndNothingElse) {
  for (const int silent : {1, 3}) {
    Cluster cluster(4, 7);
    cluster.all[static_cast<std::size_t>(silent)]->is_deaf = true;
    cluster.survey();
    cluster.run();
    EXPECT_FALSE(cluster.outcome.has_value());
    cluster.all[0]->timers.run_all();
    ASSERT_TRUE(cluster.outcome.has_value());
    EXPECT_NE(cluster.outcome->trouble, "");
    cluster.run();
  }
}

// The turn of each node's machine: who may have it, and who has it.
struct Machines {
  explicit Machines(int nodes)
      : is_free(static_cast<std::size_t>(nodes), true), held(is_free.size()) {}
  ProbeTurns turns(int node) {
    const auto n = static_cast<std::size_t>(node);
    return {[this, n]() -> std::shared_ptr<void> {
              if (!is_free[n] || !held[n].expired()) return nullptr;
              const auto turn = std::make_shared<int>();
              held[n] = turn;
              return turn;
            },
            [this] { return is_known; }};
  }
  int in_use() const {
    return static_cast<int>(
        std::count_if(held.begin(), held.end(), [](auto& h) { return !h.expired(); }));
  }
  std::vector<bool> is_free;
  std::vector<std::weak_ptr<void>> held;
  bool is_known = false;
};

TEST(Prober, WaitsUntilItIsItsTurnOnAllMachinesAndHoldsNoneMeanwhile) {
  for (const std::size_t busy : {0u, 2u, 4u}) {
    Machines machines(5);
    Cluster cluster(5, 3, [&](int node) { return machines.turns(node); });
    machines.is_free[busy] = false;
    cluster.survey();
    for (int again = 0; again < 3; ++again) {
      cluster.run();
      EXPECT_FALSE(cluster.outcome.has_value());
      EXPECT_EQ(machines.in_use(), 0) << busy;
      cluster.all[0]->timers.run_first();
    }
    machines.is_free[busy] = true;
    cluster.run();
    if (!cluster.outcome) {
      cluster.all[0]->timers.run_first();
      cluster.run();
    }
    ASSERT_TRUE(cluster.outcome.has_value()) << busy;
    EXPECT_EQ(cluster.outcome->trouble, "");
    EXPECT_GE(cluster.outcome->findings.rounds, 4);
    for (auto& node : cluster.all) node->prober.stop();
    EXPECT_EQ(machines.in_use(), 0);
  }
}

TEST(Prober, GoesOnWithoutWhenItsTurnNeverComes) {
  Machines machines(4);
  machines.is_free[3] = false;
  Cluster cluster(4, 3, [&](int node) { return machines.turns(node); });
  cluster.survey();
  cluster.run();
  cluster.all[0]->timers.run_last();
  ASSERT_TRUE(cluster.outcome.has_value());
  EXPECT_EQ(cluster.outcome->findings.rounds, 0);
  EXPECT_EQ(cluster.outcome->trouble, "others were probing this network all the time");
  cluster.run();
  EXPECT_EQ(machines.in_use(), 0);
}

TEST(Prober, DoesNotProbeWhatOthersFoundMeanwhile) {
  Machines machines(3);
  machines.is_free[1] = false;
  Cluster cluster(3, 3, [&](int node) { return machines.turns(node); });
  cluster.survey();
  cluster.run();
  machines.is_free[1] = true;
  machines.is_known = true;
  cluster.all[0]->timers.run_first();
  cluster.run();
  ASSERT_TRUE(cluster.outcome.has_value());
  EXPECT_EQ(cluster.outcome->findings.rounds, 0);
  EXPECT_EQ(machines.in_use(), 0);
}

TEST(Prober, NothingIsReportedAfterStop) {
  Cluster cluster(3, 1);
  cluster.survey();
  for (int i = 0; i < 50; ++i) cluster.network.step();
  cluster.all[0]->prober.stop();
  cluster.run();
  EXPECT_FALSE(cluster.outcome.has_value());
  EXPECT_TRUE(cluster.all[0]->timers.empty());
}

TEST(Prober, FramesThatDoNotFitAreRefused) {
  Cluster cluster(2, 1);
  ProbeFrame frame;
  frame.step = ProbeFrame::kData;
  EXPECT_FALSE(
      cluster.all[0]->prober.get_receive_buffer(1, header_of(frame, ProbeFlows::kFrameBytes + 1)));
  frame.step = ProbeFrame::kReport;
  const FrameHeader header = header_of(frame, 64);
  int taken = 0;
  while (taken < 100 && cluster.all[0]->prober.get_receive_buffer(1, header)) ++taken;
  EXPECT_LT(taken, 100);
}

TEST(ProbeMessages, ArriveAsTheyWereSent) {
  ProbeOrder order{7, ProbeOrder::Kind::kRound, 40'000, 1 << 20, {{0, 1}, {2, 0}}};
  const auto order_back = decode_probe_order(encode(order), 3);
  ASSERT_TRUE(order_back);
  EXPECT_EQ(order_back->number, 7u);
  EXPECT_EQ(order_back->kind, ProbeOrder::Kind::kRound);
  EXPECT_EQ(order_back->duration_us, 40'000u);
  EXPECT_EQ(order_back->most_bytes, 1u << 20);
  EXPECT_EQ(order_back->flows, order.flows);
  ProbeReport report;
  report.number = 9;
  report.is_busy = true;
  report.entries.push_back({{1, 2}, {400'000, 390'000, true, 120, 3}, 5'000'000});
  const auto report_back = decode_probe_report(encode(report), 3);
  ASSERT_TRUE(report_back);
  EXPECT_TRUE(report_back->is_busy);
  ASSERT_EQ(report_back->entries.size(), 1u);
  EXPECT_EQ(report_back->entries[0].flow, (probe::Flow{1, 2}));
  EXPECT_EQ(report_back->entries[0].sample.kbps, 400'000);
  EXPECT_EQ(report_back->entries[0].sample.together_kbps, 390'000);
  EXPECT_TRUE(report_back->entries[0].sample.is_steady);
  EXPECT_EQ(report_back->entries[0].sample.rtt_us, 120);
  EXPECT_EQ(report_back->entries[0].sample.hops, 3);
  EXPECT_EQ(report_back->entries[0].bytes, 5'000'000u);
}

TEST(ProbeMessages, MangledOnesAreRefused) {
  const auto order =
      encode(ProbeOrder{7, ProbeOrder::Kind::kRound, 40'000, 1 << 20, {{0, 1}, {2, 0}}});
  EXPECT_FALSE(decode_probe_order(order, 2));  // flows of a node that does not exist
  auto cut = order;
  cut.pop_back();
  EXPECT_FALSE(decode_probe_order(cut, 3));
  EXPECT_FALSE(decode_probe_order({}, 3));
  auto unknown = order;
  unknown[12] = 3;  // the kind
  EXPECT_FALSE(decode_probe_order(unknown, 3));
  EXPECT_FALSE(
      decode_probe_order(encode(ProbeOrder{1, ProbeOrder::Kind::kRound, 4'000'000'000, 1, {}}), 3));
  ProbeReport report;
  report.entries.push_back({{1, 2}, {-5, 0, true, 120}, 0});
  EXPECT_FALSE(decode_probe_report(encode(report), 3));
  EXPECT_FALSE(decode_probe_report({1, 2, 3}, 3));
  report.entries[0].sample = {5, -5, true, 120};
  EXPECT_FALSE(decode_probe_report(encode(report), 3));
  report.entries[0].sample = {5, 5, true, 120, 256};
  EXPECT_FALSE(decode_probe_report(encode(report), 3));
  report.entries[0].sample.hops = -1;
  ASSERT_TRUE(decode_probe_report(encode(report), 3));
  EXPECT_EQ(decode_probe_report(encode(report), 3)->entries[0].sample.hops, -1);
}

}  // namespace
}  // namespace riffle::prober_test
