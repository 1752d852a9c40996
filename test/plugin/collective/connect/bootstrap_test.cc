// Bootstrap on the in-memory network: one outcome for all nodes, whatever goes wrong where.
#include "plugin/collective/connect/bootstrap.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>

#include "lab/memory/memory_network.h"
#include "plugin/transport/base/mesh.h"
#include "topology/plan/planner.h"

namespace riffle::bootstrap_test {
namespace {

struct Faults {
  int reports_problem = -1;  // this node cannot take part
  int install_fails = -1;    // this node cannot take the plan
  bool verdict_refuses = false;
  bool verdict_falls_back = false;
  bool wrong_checksum = false;
};

class Node final : public FrameSink {
 public:
  Node(Mesh* mesh, const Faults& faults) : mesh_(mesh) {
    NodeReport report;
    report.rank = mesh->rank();
    report.host = "host" + std::to_string(mesh->rank());
    if (faults.reports_problem == mesh->rank()) report.problem = "no network here";
    BootstrapSteps steps;
    steps.decide = [&faults, this](const std::vector<NodeReport>& reports) {
      Verdict v;
      for (const NodeReport& r : reports) {
        if (!r.problem.empty()) v.problem = r.host + ": " + r.problem;
      }
      if (faults.verdict_refuses) v.problem = "refused";
      if (faults.verdict_falls_back) v.fallback_reason = "the ring wins";
      const PlanSet plans = plan(even_fabric(mesh_->size(), 1000), 1 << 20, {})->plans;
      v.plans = encode(plans);
      v.digest = digest(plans) + (faults.wrong_checksum ? 1 : 0);
      return v;
    };
    steps.install = [&faults, this](const PlanSet& plans, const Verdict&) {
      installed = plans;
      return faults.install_fails == mesh_->rank() ? internal_error("cannot install") : Status();
    };
    steps.finished = [this](Status s, const std::string& why_fallback) {
      EXPECT_FALSE(outcome.has_value()) << "finished twice";
      outcome = s;
      fallback_reason = why_fallback;
    };
    control_ = std::make_unique<ControlChannel>(
        mesh, [this](int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
          bootstrap->received(peer, kind, message);
        });
    bootstrap = std::make_unique<Bootstrap>(mesh, report, std::move(steps));
    bootstrap->set_channel(control_.get());
  }
  void opened(int peer) override { bootstrap->opened(peer); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return control_->get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    control_->arrived(peer, h, payload);
  }
  void sent(int peer, std::uint64_t cookie) override { control_->sent(peer, cookie); }
  void departed(int) override {}
  void lost(int peer, const Status& why) override {
    bootstrap->gone(peer);
    bootstrap->fail("lost node " + std::to_string(peer) + ": " + why.message());
  }

  std::unique_ptr<Bootstrap> bootstrap;
  std::optional<Status> outcome;
  std::string fallback_reason;
  PlanSet installed;

 private:
  Mesh* mesh_;
  std::unique_ptr<ControlChannel> control_;
};

// Runs to the end and returns the outcome that all nodes share.
Status run(int nodes, const Faults& faults, std::uint64_t seed) {
  MemoryNetwork network(nodes, seed);
  std::vector<std::unique_ptr<Node>> all;
  for (int r = 0; r < nodes; ++r) {
    all.push_back(std::make_unique<Node>(&network.mesh(r), faults));
    network.set_sink(r, all.back().get());
  }
  for (auto& node : all) node->bootstrap->start();
  while (network.step()) {
  }
  for (auto& node : all) node->bootstrap->expire();  // who still waits now fails the test
  const Status first = all[0]->outcome.value_or(internal_error("node 0 has no outcome"));
  for (int r = 0; r < nodes; ++r) {
    EXPECT_TRUE(all[r]->outcome.has_value()) << "node " << r << " has no outcome";
    if (!all[r]->outcome) continue;
    EXPECT_EQ(all[r]->outcome->message(), first.message());
    EXPECT_EQ(all[r]->fallback_reason,
              first.is_ok() && faults.verdict_falls_back ? "the ring wins" : "");
    EXPECT_EQ(first.message().find("timed out"), std::string::npos) << first.message();
    if (first.is_ok()) {
      EXPECT_EQ(all[r]->installed, all[0]->installed);
    }
  }
  return first;
}

class BootstrapNodes : public ::testing::TestWithParam<int> {};

TEST_P(BootstrapNodes, AllAgreeOnSuccess) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(run(GetParam(), {}, seed).message(), "");
  }
}

TEST_P(BootstrapNodes, AProblemAnywhereIsEverybodysProblem) {
  const int n = GetParam();
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const int culprit = static_cast<int>(seed) % n;
    Faults report;
    report.reports_problem = culprit;
    EXPECT_EQ(run(n, report, seed).message(),
              "host" + std::to_string(culprit) + ": no network here");
    Faults install;
    install.install_fails = culprit;
    EXPECT_EQ(run(n, install, seed).message(),
              "node " + std::to_string(culprit) + ": cannot install");
    Faults refused;
    refused.verdict_refuses = true;
    EXPECT_EQ(run(n, refused, seed).message(), "refused");
  }
}

TEST_P(BootstrapNodes, SteppingAsideIsNoErrorAndEverybodysDecision) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Faults faults;
    faults.verdict_falls_back = true;
    EXPECT_EQ(run(GetParam(), faults, seed).message(), "");
    faults.reports_problem = 0;  // a node that cannot take part is still a problem
    EXPECT_NE(run(GetParam(), faults, seed).message(), "");
  }
}

TEST_P(BootstrapNodes, AWrongPlanChecksumIsRefused) {
  Faults faults;
  faults.wrong_checksum = true;
  const Status s = run(GetParam(), faults, 1);
  EXPECT_NE(s.message().find("plan checksum"), std::string::npos) << s.message();
}

TEST_P(BootstrapNodes, ADeadNodeNeverLeavesAnybodyWaiting) {
  const int n = GetParam();
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Faults faults;
    const int killed = static_cast<int>(seed) % n;
    MemoryNetwork network(n, seed);
    std::vector<std::unique_ptr<Node>> all;
    for (int r = 0; r < n; ++r) {
      all.push_back(std::make_unique<Node>(&network.mesh(r), faults));
      network.set_sink(r, all.back().get());
    }
    for (auto& node : all) node->bootstrap->start();
    const std::uint64_t death = std::mt19937_64(seed)() % (20 * n);
    for (std::uint64_t step = 0; network.step(); ++step) {
      if (step == death) network.kill(killed);
    }
    for (int r = 0; r < n; ++r) {
      if (r == killed) continue;
      // Every survivor hears of the death by its own link, so nobody needs the deadline.
      EXPECT_TRUE(all[r]->outcome.has_value() || death > 15u * n)
          << "seed " << seed << " node " << r;
      // Nobody is connected where another is not, at whatever moment.
      const int other = killed == 0 ? n - 1 : 0;
      if (!all[r]->outcome || !all[other]->outcome) continue;
      EXPECT_EQ(all[r]->outcome->is_ok(), all[other]->outcome->is_ok())
          << "seed " << seed << " node " << r << ": " << all[r]->outcome->message() << "; node "
          << other << ": " << all[other]->outcome->message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, BootstrapNodes, ::testing::Values(1, 2, 3, 5, 8, 16));

}  // namespace
}  // namespace riffle::bootstrap_test
