// Where a further thread lags: operations wait for room in its ring, in order, and none is lost.
// (That the engines share the chunks of large ones: engine_test.cc, several_threads_test.cc.)
#include "plugin/collective/threads/threaded_engine.h"

#include <gtest/gtest.h>

#include "test/plugin/collective/engine/engine_harness.h"
#include "topology/plan/planner.h"

namespace riffle::threaded_engine_test {
namespace {

constexpr int kNodes = 2, kMostOperations = 4;
constexpr int kRing = 4 * kMostOperations;  // operations that a thread may be behind
constexpr std::size_t kCount = 16;

class LaggingThread : public ::testing::Test {
 protected:
  LaggingThread()
      : plans_(plan(even_fabric(kNodes, 1'000'000), 1 << 20, {.only = "direct"})->plans) {
    EngineOptions options;
    options.max_operations = kMostOperations;
    cluster_ = std::make_unique<testing::EngineCluster>(plans_, options, 1, 2);
  }

  // A small all-reduce of 1 and 1 on both nodes.
  void post() {
    for (int node = 0; node < kNodes; ++node) {
      data_.push_back(std::make_unique<std::vector<float>>(kCount, 1.0F));
      auto o = std::make_unique<Operation>();
      o->count = kCount;
      o->recv = reinterpret_cast<std::byte*>(data_.back()->data());
      o->send = o->recv;
      o->state = Operation::State::kRunning;
      operations_.push_back(std::move(o));
      cluster_->nodes[node]->engine.submit(operations_.back().get());
    }
  }
  int in_state(Operation::State state) const {
    int count = 0;
    for (const auto& o : operations_) count += o->state == state ? 1 : 0;
    return count;
  }
  // The further thread does nothing meanwhile.
  void fill_the_ring() {
    for (int i = 0; i < kRing; ++i) {
      post();
      while (cluster_->network.step()) {
      }
    }
    ASSERT_EQ(in_state(Operation::State::kDone), kNodes * kRing);
    for (int i = 0; i < kMostOperations; ++i) post();
    while (cluster_->network.step()) {
    }
    ASSERT_EQ(in_state(Operation::State::kRunning), kNodes * kMostOperations);
  }

  const PlanSet plans_;
  std::unique_ptr<testing::EngineCluster> cluster_;
  std::vector<std::unique_ptr<std::vector<float>>> data_;
  std::vector<std::unique_ptr<Operation>> operations_;
};

TEST_F(LaggingThread, OperationsWaitAndGoOn) {
  fill_the_ring();
  EXPECT_FALSE(cluster_->nodes[0]->engine.is_idle());
  while (cluster_->step()) {
  }
  EXPECT_EQ(cluster_->error(), "");
  EXPECT_EQ(in_state(Operation::State::kDone), kNodes * (kRing + kMostOperations));
  EXPECT_TRUE(cluster_->nodes[0]->engine.is_idle());
  for (const auto& one : data_) EXPECT_EQ(*one, std::vector<float>(kCount, 2.0F));
}

TEST_F(LaggingThread, WhatWaitsFailsWithTheOthers) {
  fill_the_ring();
  for (const auto& node : cluster_->nodes) node->engine.fail();
  EXPECT_EQ(in_state(Operation::State::kFailed), kNodes * kMostOperations);
  EXPECT_TRUE(cluster_->nodes[0]->engine.is_idle());
}

}  // namespace
}  // namespace riffle::threaded_engine_test
