// Which calls are traced, and frames that come before their call does, on a network that reorders
// everything.
#include "plugin/collective/engine/call_trace.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "test/plugin/collective/engine/engine_harness.h"
#include "topology/plan/planner.h"

namespace riffle::call_trace_test {
namespace {

constexpr int kNodes = 4;
constexpr std::uint64_t kElements = 1024;

class CallTraceTest : public ::testing::Test {
 protected:
  // `calls` all-reduces that all nodes post at different moments, every `every`-th traced.
  void run(std::uint32_t every, int calls, std::size_t room = SpanLog::kSpans) {
    const PlanSet plans = plan(even_fabric(kNodes, 1'000'000), 1 << 20, {.only = "direct"})->plans;
    EngineOptions options;
    options.chunk_bytes = options.piece_bytes = kElements * sizeof(float);
    options.max_chunks = 4;
    testing::EngineCluster cluster(plans, options, 1);
    for (int r = 0; r < kNodes; ++r) {
      logs_.push_back(std::make_unique<SpanLog>(room));
      options.trace = {.log = logs_.back().get(), .every = every};
      cluster.nodes[r] = std::make_unique<testing::EngineNode>(
          &cluster.network.mesh(r), std::vector<std::unique_ptr<testing::EnginePart>>(), options);
      cluster.network.set_sink(r, cluster.nodes[r].get());
      ASSERT_TRUE(cluster.nodes[r]->engine.install(plans));
    }
    std::vector<std::vector<float>> data(kNodes, std::vector<float>(kElements, 1));
    for (int call = 0; call < calls; ++call) {
      std::vector<std::unique_ptr<Operation>> operations;
      for (int r = 0; r < kNodes; ++r) {
        auto o = std::make_unique<Operation>();
        o->count = kElements;
        o->send = o->recv = reinterpret_cast<std::byte*>(data[r].data());
        o->state = Operation::State::kRunning;
        cluster.nodes[r]->engine.submit(o.get());
        operations.push_back(std::move(o));
        while (r + 1 < kNodes && cluster.network.step()) {
        }  // all that the others can do without the next one
      }
      while (cluster.network.step()) {
      }
      ASSERT_EQ(cluster.error(), "");
      for (const auto& o : operations) ASSERT_EQ(o->state, Operation::State::kDone);
    }
  }

  std::vector<Span> spans(int node) {
    std::vector<Span> all;
    for (Span span; logs_[static_cast<std::size_t>(node)]->take(&span);) all.push_back(span);
    return all;
  }

  std::vector<std::unique_ptr<SpanLog>> logs_;
};

TEST_F(CallTraceTest, OnlyEveryThirdCallIsTraced) {
  run(3, 8);
  for (int node = 0; node < kNodes; ++node) {
    std::set<std::uint64_t> calls, chunks;
    int sums = 0;
    for (const Span& span : spans(node)) {
      (span.kind == SpanKind::kCall ? calls : chunks).insert(span.number);
      sums += span.kind == SpanKind::kSum;
    }
    EXPECT_EQ(calls, (std::set<std::uint64_t>{0, 3, 6}));
    EXPECT_EQ(chunks, calls);  // one chunk per call
    EXPECT_EQ(sums, 3);
  }
}

TEST_F(CallTraceTest, FramesThatComeBeforeTheCallAreKept) {
  run(1, 2);
  for (int node = 0; node < kNodes; ++node) {
    int partials = 0, finals = 0, early = 0;
    std::vector<std::uint64_t> begins(2);
    const std::vector<Span> all = spans(node);
    for (const Span& span : all) {
      if (span.kind == SpanKind::kChunk) begins[span.number] = span.begin_ns;
    }
    for (const Span& span : all) {
      partials += span.kind == SpanKind::kPartialIn;
      finals += span.kind == SpanKind::kFinalIn;
      early += span.kind == SpanKind::kPartialIn && span.end_ns < begins[span.number];
    }
    EXPECT_EQ(partials, 2 * (kNodes - 1));
    EXPECT_EQ(finals, 2 * (kNodes - 1));
    // Node 3 posts when all others have sent it their parts; for node 0 none can be early.
    EXPECT_EQ(early, node == 0 ? 0 : 2 * node) << node;
  }
}

TEST_F(CallTraceTest, WhatFindsNoRoomIsCounted) {
  run(1, 4, 5);
  for (int node = 0; node < kNodes; ++node) {
    const std::uint64_t dropped = logs_[static_cast<std::size_t>(node)]->dropped();
    EXPECT_EQ(spans(node).size(), 5u);
    // A call: itself, its chunk, a sum, and 3 partial and 3 final sums each way.
    EXPECT_EQ(dropped, 4u * 15 - 5);
  }
}

}  // namespace
}  // namespace riffle::call_trace_test
