// Probing between nodes: every round runs to its end on every node, and whatever goes wrong only
// means that less is known.
#include "plugin/collective/prober.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>

#include "plugin/transport/memory/memory_network.h"

namespace riffle {
namespace {

// Timers that run when the test says so.
class Timers final : public TimerService {
 public:
  std::uint64_t call_at(std::uint64_t, std::function<void()> f) override {
    calls_[++last_] = std::move(f);
    return last_;
  }
  void cancel(std::uint64_t timer) override { calls_.erase(timer); }
  void run_all() {
    for (auto& [id, f] : std::exchange(calls_, {})) f();
  }
  bool empty() const { return calls_.empty(); }

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::function<void()>> calls_;
};

struct Node final : MeshSink {
  explicit Node(Mesh* mesh) : prober(mesh, &timers) {}
  void opened(int peer) override { prober.opened(peer); }
  Result<std::byte*> place(int peer, const FrameHeader& h) override {
    return prober.place(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    if (!is_deaf) prober.arrived(peer, h, payload);
  }
  void sent(int, std::uint64_t cookie) override { prober.sent(cookie); }
  void departed(int) override {}
  void lost(int peer, const Status& why) override {
    ADD_FAILURE() << "lost " << peer << ": " << why.message();
  }

  Timers timers;
  Prober prober;
  bool is_deaf = false;
};

struct Cluster {
  explicit Cluster(int nodes, std::uint64_t seed) : network(nodes, seed) {
    for (int r = 0; r < nodes; ++r) {
      all.push_back(std::make_unique<Node>(&network.mesh(r)));
      network.set_sink(r, all.back().get());
    }
  }
  void survey() {
    all[0]->prober.survey({}, 1'000'000'000, [this](const ProbeOutcome& o) {
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
  FrameHeader header;
  header.type = FrameType::kProbe;
  header.flags = ProbeFlows::kData;
  header.length = ProbeFlows::kFrameBytes + 1;
  EXPECT_FALSE(cluster.all[0]->prober.place(1, header));
  header.flags = ProbeFlows::kReport;
  header.length = 64;
  int taken = 0;
  while (taken < 100 && cluster.all[0]->prober.place(1, header)) ++taken;
  EXPECT_LT(taken, 100);
}

TEST(ProbeMessages, ArriveAsTheyWereSent) {
  ProbeOrder order{7, 40'000, 1 << 20, {{0, 1}, {2, 0}}};
  const auto order_back = decode_probe_order(encode(order), 3);
  ASSERT_TRUE(order_back);
  EXPECT_EQ(order_back->number, 7u);
  EXPECT_EQ(order_back->duration_us, 40'000u);
  EXPECT_EQ(order_back->most_bytes, 1u << 20);
  EXPECT_EQ(order_back->flows, order.flows);
  ProbeReport report;
  report.number = 9;
  report.entries.push_back({{1, 2}, {400'000, true, 120}, 5'000'000});
  const auto report_back = decode_probe_report(encode(report), 3);
  ASSERT_TRUE(report_back);
  ASSERT_EQ(report_back->entries.size(), 1u);
  EXPECT_EQ(report_back->entries[0].flow, (probe::Flow{1, 2}));
  EXPECT_EQ(report_back->entries[0].sample.kbps, 400'000);
  EXPECT_TRUE(report_back->entries[0].sample.is_steady);
  EXPECT_EQ(report_back->entries[0].sample.rtt_us, 120);
  EXPECT_EQ(report_back->entries[0].bytes, 5'000'000u);
}

TEST(ProbeMessages, MangledOnesAreRefused) {
  const auto order = encode(ProbeOrder{7, 40'000, 1 << 20, {{0, 1}, {2, 0}}});
  EXPECT_FALSE(decode_probe_order(order, 2));  // flows of a node that does not exist
  auto cut = order;
  cut.pop_back();
  EXPECT_FALSE(decode_probe_order(cut, 3));
  EXPECT_FALSE(decode_probe_order({}, 3));
  EXPECT_FALSE(decode_probe_order(encode(ProbeOrder{1, 4'000'000'000, 1, {}}), 3));
  ProbeReport report;
  report.entries.push_back({{1, 2}, {-5, true, 120}, 0});
  EXPECT_FALSE(decode_probe_report(encode(report), 3));
  EXPECT_FALSE(decode_probe_report({1, 2, 3}, 3));
}

}  // namespace
}  // namespace riffle
