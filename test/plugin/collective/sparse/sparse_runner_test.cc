// Nodes that turn out not to be at the same call: the runner alone, without the agreement that
// keeps that from happening.
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/collective/sparse/sparse_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lab/memory/memory_network.h"
#include "plugin/transport/base/mesh.h"
#include "test/sparse_runner_setup.h"

namespace riffle::sparse_runner_test {
namespace {

constexpr std::uint64_t kElements = 4000;

class Node final : public FrameSink {
 public:
  Node(Mesh& mesh, int rank, int nodes) : run(testing::sparse_run_of(rank, nodes, 1, kElements)) {
    runner = std::make_unique<SparseRunner>(
        &mesh, SparseRunner::Options{.most_elements = kElements},
        [this](int, const Status& why) { violation = why.message(); });
  }
  void call(float value, std::uint32_t digest) {
    SparseSegment& s = run->segments(0)[0];
    for (std::uint64_t i = 0; i < kElements; ++i) {
      data[i] = value * static_cast<float>(1 + i % 7);
    }
    s.send = s.recv = reinterpret_cast<std::byte*>(data.data());
    s.density = testing::kSparseDensity;
    s.digest = digest;
    s.operation.state = Operation::State::kRunning;
    runner->submit(&s);
  }
  SparseSegment& segment() const { return run->segments(0)[0]; }

  void opened(int) override {}
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& h) override {
    return runner->get_receive_buffer(peer, h);
  }
  void arrived(int peer, const FrameHeader& h, std::byte* payload) override {
    runner->arrived(peer, h, payload);
  }
  void sent(int, std::uint64_t cookie) override { runner->sent(cookie); }
  void departed(int) override {}
  void lost(int, const Status& why) override { violation = why.message(); }

  std::unique_ptr<SparseRun> run;
  std::unique_ptr<SparseRunner> runner;
  std::vector<float> data = std::vector<float>(kElements);
  std::string violation;
};

TEST(SparseRunner, NodesThatAreNotAtTheSameCallSumDenselyAndKeepTheirResiduals) {
  for (int nodes = 2; nodes <= 7; ++nodes) {
    for (int odd = 0; odd < nodes; ++odd) {
      MemoryNetwork network(nodes, static_cast<std::uint64_t>(nodes));
      std::vector<std::unique_ptr<Node>> all;
      for (int r = 0; r < nodes; ++r) {
        all.push_back(std::make_unique<Node>(network.mesh(r), r, nodes));
        network.set_sink(r, all.back().get());
      }
      testing::open_links(network, nodes);
      for (auto& node : all) node->call(1, 5);
      while (network.step()) {
      }
      std::vector<std::vector<float>> residuals;
      for (auto& node : all) {
        ASSERT_EQ(node->segment().operation.state, Operation::State::kDone) << node->violation;
        EXPECT_EQ(node->segment().outcome, SparseSegment::Outcome::kSparse);
        residuals.push_back(node->segment().state.residual);
      }
      for (int r = 0; r < nodes; ++r) all[r]->call(static_cast<float>(r), r == odd ? 6 : 7);
      while (network.step()) {
      }
      const int sum = nodes * (nodes - 1) / 2;
      for (int r = 0; r < nodes; ++r) {
        ASSERT_EQ(all[r]->segment().operation.state, Operation::State::kDone) << all[r]->violation;
        EXPECT_EQ(all[r]->segment().outcome, SparseSegment::Outcome::kMixedUp) << r;
        EXPECT_EQ(all[r]->segment().state.residual, residuals[r]);
        for (std::uint64_t i = 0; i < kElements; ++i) {
          ASSERT_EQ(all[r]->data[i], static_cast<float>(sum) * static_cast<float>(1 + i % 7));
        }
        EXPECT_TRUE(all[r]->runner->is_idle());
      }
    }
  }
}

TEST(SparseRunner, AMessageThatShowsItsFaultWhenReadIsRefusedAndStopsTheSegment) {
  MemoryNetwork network(2, 1);
  Node first(network.mesh(0), 0, 2), second(network.mesh(1), 1, 2);
  network.set_sink(0, &first);
  network.set_sink(1, &second);
  testing::open_links(network, 2);
  second.call(1, 5);
  SparseFrame frame;
  frame.least_digest = frame.largest_digest = 5;
  frame.total = 100;
  const FrameHeader header = header_of(frame, 100);
  const Result<std::byte*> place = second.get_receive_buffer(0, header);
  ASSERT_TRUE(place) << place.status().message();
  std::fill_n(*place, 100, std::byte{0x55});
  second.arrived(0, header, *place);
  EXPECT_NE(second.violation.find("magic"), std::string::npos) << second.violation;
  EXPECT_EQ(second.segment().operation.state, Operation::State::kRunning);
  second.runner->fail();
  EXPECT_EQ(second.segment().operation.state, Operation::State::kFailed);
  EXPECT_TRUE(second.runner->is_idle());
}

}  // namespace
}  // namespace riffle::sparse_runner_test
