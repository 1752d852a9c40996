// From spans to a picture: waits, rows whose slices do not overlap, and Chrome's JSON.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "lab/simulation/simulate.h"
#include "tools/trace/chrome.h"
#include "tools/trace/rows.h"
#include "tools/trace/waits.h"
#include "topology/plan/planner.h"

namespace riffle::tools::trace::picture_test {
namespace {

using nlohmann::json;

Span made(SpanKind kind, int peer, std::uint64_t begin_ns, std::uint64_t end_ns,
          std::uint8_t level = 0, std::uint64_t offset = 0) {
  return {.kind = kind,
          .level = level,
          .peer = peer,
          .offset = offset,
          .bytes = 100,
          .begin_ns = begin_ns,
          .end_ns = end_ns};
}

TEST(TraceWaits, TheLastContributionIsWaitedForSinceAllOthersCame) {
  const std::vector<Span> spans{
      made(SpanKind::kPartialIn, 1, 5, 20), made(SpanKind::kPartialIn, 2, 5, 90),
      made(SpanKind::kPartialIn, 2, 5, 500, 0, 100),  // another sum's
      made(SpanKind::kSum, 2, 95, 96), made(SpanKind::kChunk, -1, 10, 99)};
  const auto waits = waits_of(spans, 0);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].peer, 2);
  EXPECT_EQ(waits[0].begin_ns, 20u);
  EXPECT_EQ(waits[0].end_ns, 90u);
}

TEST(TraceWaits, ItsOwnPartIsTheSumOfTheLevelAbove) {
  std::vector<Span> spans{made(SpanKind::kChunk, -1, 10, 99), made(SpanKind::kSum, 0, 50, 60),
                          made(SpanKind::kPartialIn, 3, 5, 80, 1, 40),
                          made(SpanKind::kSum, 3, 81, 82, 1, 40)};
  auto waits = waits_of(spans, 0);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].begin_ns, 60u);
  spans[2].end_ns = 55;  // it came first: the node waited for itself
  spans[3].peer = 0;
  EXPECT_TRUE(waits_of(spans, 0).empty());
}

TEST(TraceWaits, TheLastResultIsWaitedForSinceAllOthersCame) {
  const std::vector<Span> spans{
      made(SpanKind::kChunk, -1, 10, 99), made(SpanKind::kFinalIn, 1, 20, 30),
      made(SpanKind::kFinalIn, 2, 20, 60, 0, 100), made(SpanKind::kFinalIn, 2, 60, 95, 0, 200)};
  const auto waits = waits_of(spans, 0);
  ASSERT_EQ(waits.size(), 1u);
  EXPECT_EQ(waits[0].peer, 2);
  EXPECT_EQ(waits[0].begin_ns, 30u);
  EXPECT_EQ(waits[0].end_ns, 95u);
}

TEST(TraceRows, FramesOfALinkStandOneBehindTheOther) {
  JobTrace job;
  job.nodes.resize(2);
  job.nodes[1].host = "h1";
  job.nodes[0].spans = {made(SpanKind::kPartialOut, 1, 0, 100),
                        made(SpanKind::kFinalOut, 1, 10, 60),
                        made(SpanKind::kFinalOut, 1, 500, 501)};
  const auto rows = rows_of(job, 0, -1000);
  const auto link = std::find_if(rows.begin(), rows.end(),
                                 [](const Row& r) { return r.name == "to node 1 (h1)"; });
  ASSERT_NE(link, rows.end());
  ASSERT_EQ(link->slices.size(), 3u);
  EXPECT_EQ(link->slices[0].begin_ns, 1010);
  EXPECT_EQ(link->slices[1].begin_ns, 1060);
  EXPECT_EQ(link->slices[1].end_ns, 1100);
  EXPECT_EQ(json::parse(link->slices[1].args)["waited_us"], 0.06);
  EXPECT_EQ(link->slices[2].begin_ns, 1500);
}

TEST(TraceRows, NumbersOfMicrosecondsAreExact) {
  EXPECT_EQ(us_number(0), "0.000");
  EXPECT_EQ(us_number(-1), "-0.001");
  EXPECT_EQ(us_number(1'234'567'890'123'456'789), "1234567890123456.789");
  EXPECT_EQ(us_number(std::numeric_limits<std::int64_t>::min()), "-9223372036854775.808");
}

// A straggler's job as it would be written.
class Picture {
 public:
  explicit Picture(bool has_arrows) {
    Fabric fabric = even_fabric(4, 1'000'000);
    fabric.nodes[2].out_kbps = fabric.nodes[2].in_kbps = 100'000;
    sim::SimulateOptions options;
    options.traces = true;
    auto run = sim::simulate(fabric, plan(fabric, 4 << 20, {})->plans, 4 << 20, options);
    job.nodes.resize(4);
    for (std::size_t i = 0; i < 4; ++i) {
      job.nodes[i].is_there = true;
      job.nodes[i].spans = std::move(run->spans[i]);
    }
    job.nodes[0].events = {{0, "plan", "direct", "it is \"the\" fastest"}};
    frames = deliveries(job);
    std::ostringstream text;
    write_chrome(job, same_clock(4), has_arrows ? frames : std::vector<Delivery>(), text);
    picture = json::parse(text.str());
  }

  JobTrace job;
  std::vector<Delivery> frames;
  json picture;
};

TEST(TracePicture, SlicesOfARowDoNotOverlap) {
  const Picture made(false);
  std::map<std::pair<int, int>, double> row_end;
  std::map<std::pair<int, int>, std::string> rows;
  std::size_t slices = 0;
  for (const json& e : made.picture["traceEvents"]) {
    const std::pair row{e["pid"].get<int>(), e["tid"].get<int>()};
    if (e["ph"] == "M" && e["name"] == "thread_name") rows[row] = e["args"]["name"];
    if (e["ph"] != "X") continue;
    ++slices;
    EXPECT_TRUE(rows.contains(row));
    EXPECT_GE(e["ts"].get<double>(), 0);
    EXPECT_GE(e["dur"].get<double>(), 0);
    EXPECT_GE(e["ts"].get<double>(), row_end[row] - 1e-6) << rows[row];
    row_end[row] = e["ts"].get<double>() + e["dur"].get<double>();
  }
  EXPECT_GT(slices, 4 * made.frames.size() / 2);
  std::set<std::string> names;
  for (const auto& [row, name] : rows) {
    if (row.first == 1) names.insert(name);
  }
  for (const char* name :
       {"plan", "calls", "chunks", "level 1", "waits", "sums", "to node 1", "from node 3"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(TracePicture, SaysWhatItIsOf) {
  const json about = Picture(false).picture["otherData"];
  EXPECT_EQ(about["schema"], "riffle-trace-1");
  EXPECT_EQ(about["nodes"], 4);
  EXPECT_EQ(about["dropped_spans"], 0);
  EXPECT_EQ(about["clocks"].size(), 4u);
}

TEST(TracePicture, AllWaitForTheSlowNode) {
  const Picture made(false);
  for (int node : {0, 1, 3}) {
    std::map<int, std::uint64_t> waited_ns;
    for (const Wait& w : waits_of(made.job.nodes[static_cast<std::size_t>(node)].spans, node)) {
      waited_ns[w.peer] += w.end_ns - w.begin_ns;
    }
    for (const auto& [peer, ns] : waited_ns) {
      if (peer == 2) continue;
      EXPECT_GT(waited_ns[2], 2 * ns) << node << " for " << peer;
    }
  }
}

TEST(TracePicture, EveryFrameHasAnArrow) {
  const Picture made(true);
  std::map<std::uint64_t, double> begins;
  std::size_t ends = 0;
  for (const json& e : made.picture["traceEvents"]) {
    ends += e["ph"] == "f";
    if (e["ph"] != "s") continue;
    EXPECT_TRUE(begins.emplace(e["id"], e["ts"]).second);
  }
  EXPECT_EQ(begins.size(), made.frames.size());
  EXPECT_EQ(ends, made.frames.size());
}

}  // namespace
}  // namespace riffle::tools::trace::picture_test
