// Clocks of nodes from the frames between them: known differences come out, within what is said.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tools/trace/clocks.h"

namespace riffle::tools::trace::clocks_test {
namespace {

constexpr std::int64_t kUs = 1000;

// Nodes whose clocks are ahead by known times, and frames that take known times.
class MadeTrace {
 public:
  explicit MadeTrace(std::vector<std::int64_t> ahead_ns) : ahead_ns_(std::move(ahead_ns)) {
    job.nodes.resize(ahead_ns_.size());
    for (NodeTrace& node : job.nodes) node.is_there = true;
  }

  void frame(int from, int to, std::int64_t sent_ns, std::int64_t delay_ns) {
    Span span;
    span.number = number_++;
    span.bytes = 1000;
    add(from, to, span, SpanKind::kPartialOut, sent_ns);
    add(to, from, span, SpanKind::kPartialIn, sent_ns + delay_ns);
  }

  Clocks compare() const { return compare_clocks(job, deliveries(job)); }

  JobTrace job;

 private:
  static constexpr std::int64_t kStart = std::int64_t{1} << 50;  // no clock is below 0

  void add(int node, int peer, Span span, SpanKind kind, std::int64_t at_ns) {
    const auto i = static_cast<std::size_t>(node);
    span.kind = kind;
    span.peer = peer;
    span.begin_ns = static_cast<std::uint64_t>(kStart + at_ns + ahead_ns_[i]);
    span.end_ns = span.begin_ns + 10;
    job.nodes[i].spans.push_back(span);
  }

  std::vector<std::int64_t> ahead_ns_;
  std::uint64_t number_ = 0;
};

void expect_within_bounds(const Clocks& clocks, const std::vector<std::int64_t>& ahead_ns,
                          std::int64_t most_uncertain_ns) {
  for (std::size_t i = 0; i < ahead_ns.size(); ++i) {
    ASSERT_TRUE(clocks.nodes[i].uncertainty_ns) << i;
    EXPECT_LE(*clocks.nodes[i].uncertainty_ns, most_uncertain_ns) << i;
    const std::int64_t truth_ns = ahead_ns[i] - ahead_ns[0];
    EXPECT_LE(std::abs(clocks.nodes[i].ahead_ns - truth_ns), *clocks.nodes[i].uncertainty_ns + 1)
        << i;
  }
  EXPECT_EQ(clocks.contradiction_ns, 0);
}

TEST(TraceClocks, AllPairsWithQueues) {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  std::vector<std::int64_t> ahead_ns;
  for (int i = 0; i < 9; ++i) ahead_ns.push_back(below(200'000'000'000'000) - 100'000'000'000'000);
  MadeTrace made(ahead_ns);
  for (int i = 0; i < 20'000; ++i) {
    const int from = static_cast<int>(below(9)), to = static_cast<int>(below(9));
    // 50 us of latency, and queues of up to 20 ms.
    if (from != to) made.frame(from, to, i * 100 * kUs, 50 * kUs + below(20'000 * kUs));
  }
  // Of some 280 frames per pair the luckiest waited some 70 us; ways over others are luckier still.
  expect_within_bounds(made.compare(), ahead_ns, 250 * kUs);
}

TEST(TraceClocks, DelaysThatDifferByDirectionAreWithinTheUncertainty) {
  const std::vector<std::int64_t> ahead_ns{0, -3'000'000};
  MadeTrace made(ahead_ns);
  made.frame(0, 1, 0, 900 * kUs);
  made.frame(1, 0, 5000 * kUs, 100 * kUs);
  const Clocks clocks = made.compare();
  expect_within_bounds(clocks, ahead_ns, 500 * kUs);
  EXPECT_EQ(clocks.nodes[1].ahead_ns, -3'000'000 + 400 * kUs) << "the middle of the two bounds";
}

TEST(TraceClocks, ARingInWhichNoNodeAnswers) {
  const std::vector<std::int64_t> ahead_ns{5'000'000, 0, 70'000'000'000, -80'000'000, 9};
  MadeTrace made(ahead_ns);
  for (int lap = 0; lap < 10; ++lap) {
    for (int node = 0; node < 5; ++node) {
      made.frame(node, (node + 1) % 5, lap * 1000 * kUs, (100 + 50 * lap) * kUs);
    }
  }
  // Once round takes 500 us.
  expect_within_bounds(made.compare(), ahead_ns, 250 * kUs);
}

TEST(TraceClocks, NoFrameComesBeforeItWasSent) {
  std::mt19937_64 random(11);
  const std::vector<std::int64_t> ahead_ns{0, 40'000'000, -70'000'000, 1};
  MadeTrace made(ahead_ns);
  for (int i = 0; i < 500; ++i) {
    const int from = static_cast<int>(random() % 4),
              to = static_cast<int>((from + 1 + random() % 3) % 4);
    made.frame(from, to, i * kUs, static_cast<std::int64_t>(random() % 100'000));
  }
  const auto frames = deliveries(made.job);
  ASSERT_EQ(frames.size(), 500u);
  const Clocks clocks = compare_clocks(made.job, frames);
  for (const Delivery& f : frames) {
    const auto sent = static_cast<std::int64_t>(f.out->begin_ns) - clocks.nodes[f.from].ahead_ns;
    const auto came = static_cast<std::int64_t>(f.in->begin_ns) - clocks.nodes[f.to].ahead_ns;
    EXPECT_LE(sent, came + 1);
  }
}

TEST(TraceClocks, WithoutFramesThereAndBackTheTimeOfDayHasToDo) {
  MadeTrace made({0, 0, 0});
  made.frame(0, 1, 0, kUs);
  made.frame(1, 0, 0, kUs);
  made.frame(0, 2, 0, kUs);
  for (std::int64_t i = 0; i < 3; ++i) {
    made.job.nodes[static_cast<std::size_t>(i)].time_of_day_offset_ns = 1'700'000'000'000 - 100 * i;
  }
  const Clocks clocks = made.compare();
  EXPECT_TRUE(clocks.nodes[1].uncertainty_ns);
  EXPECT_FALSE(clocks.nodes[2].uncertainty_ns);
  EXPECT_EQ(clocks.nodes[2].ahead_ns, 200);
}

TEST(TraceClocks, TheFirstNodeOfWhichThereIsATraceIsTheReference) {
  MadeTrace made({0, 1'000'000, 3'000'000});
  made.job.nodes[0].is_there = false;
  made.frame(1, 2, 0, 0);
  made.frame(2, 1, 0, 0);
  const Clocks clocks = made.compare();
  EXPECT_EQ(clocks.reference, 1);
  EXPECT_EQ(clocks.nodes[1].ahead_ns, 0);
  EXPECT_EQ(clocks.nodes[2].ahead_ns, 2'000'000);
}

TEST(TraceClocks, ClocksThatDriftContradictThemselvesAndThatIsSaid) {
  MadeTrace made({0, 0, 0});
  for (int i = 0; i < 100; ++i) {
    // Node 1's clock gains 10 us per frame, and later loses them again.
    const std::int64_t gained = 10 * kUs * std::min(i, 100 - i);
    made.frame(0, 1, i * 1000 * kUs, 20 * kUs + gained);
    made.frame(1, 0, i * 1000 * kUs + gained, 20 * kUs - gained);
    made.frame(1, 2, i * 1000 * kUs + gained, 20 * kUs - gained);
    made.frame(2, 1, i * 1000 * kUs, 20 * kUs + gained);
  }
  const Clocks clocks = made.compare();
  EXPECT_GT(clocks.contradiction_ns, 100 * kUs);
}

TEST(TraceClocks, FramesAreThoseTracedAtBothEnds) {
  MadeTrace made({0, 0});
  made.frame(0, 1, 0, kUs);
  made.frame(0, 1, 1, kUs);
  made.job.nodes[1].spans.pop_back();  // the second never came
  made.job.nodes[1].spans.push_back(made.job.nodes[1].spans.front());
  made.job.nodes[1].spans.back().term = 1;  // of another term
  made.job.nodes[1].spans.push_back(made.job.nodes[1].spans.front());
  made.job.nodes[1].spans.back().kind = SpanKind::kFinalIn;  // another kind of frame
  const auto frames = deliveries(made.job);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].in, &made.job.nodes[1].spans[0]);
}

}  // namespace
}  // namespace riffle::tools::trace::clocks_test
