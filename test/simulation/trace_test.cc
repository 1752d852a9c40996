// Traced calls of the production engine, in virtual time: every frame of the plan has its spans at
// both ends, no frame that it does not have; and none of a former term after a loss.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "lab/simulation/play.h"
#include "lab/simulation/simulate.h"
#include "topology/plan/planner.h"

namespace riffle::sim::trace_test {
namespace {

bool is_out(const Span& s) {
  return s.kind == SpanKind::kPartialOut || s.kind == SpanKind::kFinalOut;
}
bool is_in(const Span& s) { return s.kind == SpanKind::kPartialIn || s.kind == SpanKind::kFinalIn; }
auto frame_name(int from, int to, const Span& s) {
  const bool is_final = s.kind == SpanKind::kFinalOut || s.kind == SpanKind::kFinalIn;
  return std::tuple(from, to, s.term, s.number, s.level, s.group, is_final, s.offset);
}
using FrameName = decltype(frame_name(0, 0, Span()));

// Frames of one chunk of `count` floats: in a group of n every shard goes through n - 1 nodes to
// its owner and back to as many, fragment by fragment.
std::uint64_t frames_of(const GroupPlan& plan, std::uint64_t count, std::uint64_t fragment) {
  constexpr std::uint64_t kGrain = 64 / sizeof(float);
  std::uint64_t frames = 0;
  for (const Level& level : plan.levels) {
    for (const Group& group : level.groups) {
      for (std::size_t shard = 0; shard < group.members.size(); ++shard) {
        const std::uint64_t begin = element_of(group.cuts[shard], count, kGrain);
        const std::uint64_t end = element_of(group.cuts[shard + 1], count, kGrain);
        if (begin == end) continue;
        frames += 2 * (group.members.size() - 1) * ((end - 1) / fragment - begin / fragment + 1);
      }
    }
  }
  return frames;
}

struct Case {
  const char* name;
  const char* plan;
  Fabric fabric;
};

Fabric uneven(int nodes) {
  Fabric fabric = even_fabric(nodes, 1'000'000);
  fabric.nodes[1].out_kbps = fabric.nodes[1].in_kbps = 250'000;
  return fabric;
}

class TraceTest : public ::testing::TestWithParam<Case> {};

TEST_P(TraceTest, EveryFrameOfThePlanIsTracedAtBothEnds) {
  const Fabric& fabric = GetParam().fabric;
  constexpr std::uint64_t kBytes = 5 << 20;
  PlanOptions planning;
  planning.only = GetParam().plan;
  PlanSet plans = plan(fabric, kBytes, planning)->plans;
  plans.chunk_bytes = 0;
  plans.small = {};
  SimulateOptions options;
  options.traces = true;
  const Result<Simulated> run = simulate(fabric, plans, kBytes, options);
  ASSERT_TRUE(run) << run.status().message();
  EXPECT_EQ(run->dropped_spans, 0u);

  std::map<FrameName, const Span*> out;
  std::map<std::uint64_t, std::uint64_t> frames;  // by chunk
  std::uint64_t out_bytes = 0, in_bytes = 0, came = 0;
  for (int node = 0; node < fabric.size(); ++node) {
    for (const Span& s : run->spans[static_cast<std::size_t>(node)]) {
      EXPECT_LE(s.begin_ns, s.end_ns);
      if (!is_out(s)) continue;
      EXPECT_TRUE(out.emplace(frame_name(node, s.peer, s), &s).second) << "traced twice";
      ++frames[s.number];
      out_bytes += s.bytes;
    }
  }
  for (int node = 0; node < fabric.size(); ++node) {
    for (const Span& s : run->spans[static_cast<std::size_t>(node)]) {
      if (!is_in(s)) continue;
      const auto sent = out.find(frame_name(s.peer, node, s));
      ASSERT_NE(sent, out.end()) << "a frame came that was not sent";
      EXPECT_LE(sent->second->end_ns, s.end_ns);
      in_bytes += s.bytes;
      ++came;
    }
  }
  EXPECT_EQ(came, out.size());
  EXPECT_EQ(out_bytes, run->counters.payload_bytes) << "what the network itself counted";
  EXPECT_EQ(in_bytes, out_bytes);
  const std::uint64_t count = options.call_bytes / sizeof(float);
  ASSERT_EQ(frames.size(), kBytes / options.call_bytes);
  for (const auto& [chunk, traced] : frames) {
    const GroupPlan& lane = plans.lanes[chunk % plans.lanes.size()];
    EXPECT_EQ(traced, frames_of(lane, count, options.engine.piece_bytes / sizeof(float)))
        << "chunk " << chunk;
  }
}

TEST_P(TraceTest, CallsAndChunksHoldTheirFramesAndSums) {
  const Fabric& fabric = GetParam().fabric;
  PlanOptions planning;
  planning.only = GetParam().plan;
  SimulateOptions options;
  options.traces = true;
  const Result<Simulated> run =
      simulate(fabric, plan(fabric, 4 << 20, planning)->plans, 4 << 20, options);
  ASSERT_TRUE(run) << run.status().message();
  for (const std::vector<Span>& spans : run->spans) {
    std::map<std::uint64_t, const Span*> calls, chunks;
    for (const Span& s : spans) {
      if (s.kind == SpanKind::kCall) calls[s.number] = &s;
      if (s.kind == SpanKind::kChunk) chunks[s.number] = &s;
    }
    EXPECT_EQ(calls.size(), 4u);
    std::uint64_t bytes = 0;
    for (const auto& [number, chunk] : chunks) {
      ASSERT_TRUE(calls.contains(chunk->offset));
      EXPECT_LE(calls[chunk->offset]->begin_ns, chunk->begin_ns);
      EXPECT_GE(calls[chunk->offset]->end_ns, chunk->end_ns);
      bytes += chunk->bytes;
    }
    EXPECT_EQ(bytes, 4u << 20);
    for (const Span& s : spans) {
      if (s.kind == SpanKind::kCall || s.kind == SpanKind::kChunk) continue;
      ASSERT_TRUE(chunks.contains(s.number));
      EXPECT_LE(s.end_ns, chunks[s.number]->end_ns);
      // Frames may come before the call begins here.
      const std::uint64_t least_ns = is_in(s) ? 0 : chunks[s.number]->begin_ns;
      EXPECT_GE(s.begin_ns, least_ns);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Plans, TraceTest,
                         ::testing::Values(Case{"direct", "direct", even_fabric(5, 1'000'000)},
                                           Case{"uneven", "direct", uneven(6)},
                                           Case{"ring", "ring", even_fabric(8, 1'000'000)},
                                           Case{"grid", "halving-doubling",
                                                even_fabric(8, 1'000'000)},
                                           Case{"tree", "double-tree", even_fabric(7, 1'000'000)}),
                         [](const auto& info) { return info.param.name; });

struct TracedLosses {
  int terms = 0;         // of the node that saw most
  std::size_t came = 0;  // frames in terms that began after a loss
};

// Frames of the former term are under way when the next one begins, and chunks count from 0 again.
TracedLosses check_losses(std::uint64_t seed) {
  Scenario scenario = draw_loss_scenario(seed);
  std::vector<std::unique_ptr<SpanLog>> logs;
  for (int node = 0; node < scenario.size(); ++node) {
    scenario.traces.push_back(logs.emplace_back(std::make_unique<SpanLog>()).get());
  }
  const Outcome outcome = play(scenario);
  EXPECT_EQ(outcome.broken, "") << seed;
  std::vector<std::vector<Span>> spans(logs.size());
  std::map<FrameName, Span> out;
  for (std::size_t node = 0; node < logs.size(); ++node) {
    EXPECT_EQ(logs[node]->dropped(), 0u);
    for (Span s; logs[node]->take(&s);) {
      spans[node].push_back(s);
      if (is_out(s)) out.emplace(frame_name(static_cast<int>(node), s.peer, s), s);
    }
  }
  TracedLosses found;
  for (std::size_t node = 0; node < spans.size(); ++node) {
    std::set<FrameName> names;
    std::set<std::uint32_t> terms;
    for (const Span& s : spans[node]) {
      terms.insert(s.term);
      if (!is_in(s)) continue;
      const FrameName name = frame_name(s.peer, static_cast<int>(node), s);
      EXPECT_TRUE(names.insert(name).second) << seed << ": a frame came twice";
      found.came += s.term > 0;
      // (Of a frame that had not left when its term ended, no more is known at its sender.)
      const auto sent = out.find(name);
      if (sent == out.end()) continue;
      EXPECT_LE(sent->second.begin_ns, s.end_ns) << seed << ": it came before it was sent";
    }
    found.terms = std::max(found.terms, static_cast<int>(terms.size()));
  }
  return found;
}

TEST(TraceLosses, NoFrameOfAFormerTermIsTakenForOneOfTheNext) {
  int several_terms = 0;
  std::size_t came = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const TracedLosses found = check_losses(seed);
    several_terms += found.terms > 1;
    came += found.came;
  }
  EXPECT_GT(several_terms, 30);
  EXPECT_GT(came, 1000u);
}

}  // namespace
}  // namespace riffle::sim::trace_test
