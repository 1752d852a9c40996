// The parts of the stand-in that need no plugin: reductions, trees, bootstrap and launcher.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "lab/nccl_host/launcher.h"
#include "lab/nccl_host/work/pattern.h"
#include "lab/nccl_host/work/small_floats.h"
#include "lab/nccl_host/work/tree.h"

namespace riffle::host::parts_test {
namespace {

TEST(SmallFloats, EveryHalfSurvivesTheWayThere) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half h{static_cast<std::uint16_t>(bits)};
    const float f = to_float(h);
    if (std::isnan(f)) continue;
    EXPECT_EQ(to_half(f).bits, bits);
    EXPECT_EQ(to_bfloat16(to_float(Bfloat16{h.bits})).bits, bits);
  }
  EXPECT_TRUE(std::isnan(to_float(to_half(NAN))));
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(NAN))));
  EXPECT_EQ(to_half(65520.0f).bits, 0x7c00);  // rounds to infinity
  EXPECT_EQ(to_half(65519.0f).bits, 0x7bff);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0);  // tie to even
  EXPECT_EQ(to_half(0x1.8p-25f).bits, 1);
}

TEST(SmallFloats, EveryFloat8SurvivesTheWayThere) {
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const auto b = static_cast<std::uint8_t>(bits);
    if (const float f = to_float(Float8E4m3{b}); !std::isnan(f)) {
      EXPECT_EQ(to_e4m3(f).bits, b);
    }
    if (const float f = to_float(Float8E5m2{b}); std::isfinite(f)) {
      EXPECT_EQ(to_e5m2(f).bits, b);
    }
  }
  EXPECT_EQ(to_float(to_e4m3(1e9f)), 448.0f);
}

TEST(ReduceCopy, ThreeSourcesTwoTargetsAndAverages) {
  const std::size_t n = 5003;  // not a multiple of the tile
  std::vector<std::int32_t> a(n), b(n), c(n), x(n), y(n);
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = static_cast<std::int32_t>(i) - 2000;
    b[i] = 3;
    c[i] = -static_cast<std::int32_t>(2 * i);
  }
  void* const dsts[] = {x.data(), y.data()};
  const void* const srcs[] = {a.data(), b.data(), c.data()};
  reduce_copy(dsts, srcs, n, DataType::kInt32, ReduceOp::kSum, {.divide_result = 3});
  for (std::size_t i = 0; i < n; ++i) ASSERT_EQ(x[i], (a[i] + b[i] + c[i]) / 3) << i;
  EXPECT_EQ(x, y);
  std::vector<float> f(n, 6.0f), g(n, 1.0f), z(n);
  void* const one[] = {z.data()};
  const void* const two[] = {f.data(), g.data()};
  reduce_copy(one, two, n, DataType::kFloat32, ReduceOp::kSum, {.scale_first = 0.5});
  EXPECT_EQ(z, std::vector<float>(n, 4.0f));
}

TEST(Pattern, ADifferentElementIsSeen) {
  std::vector<float> data(1000);
  fill_pattern(data.data(), data.size(), DataType::kFloat32, 0, 5);
  EXPECT_EQ(count_wrong(data.data(), data.size(), DataType::kFloat32, Op::kSum, 1, 5), 0u);
  data[17] += 1;
  EXPECT_EQ(count_wrong(data.data(), data.size(), DataType::kFloat32, Op::kSum, 1, 5), 1u);
}

TEST(Tree, ParentsAndChildrenAgree) {
  for (int ranks = 2; ranks <= 40; ++ranks) {
    for (int tree : {0, 1}) {
      int roots = 0;
      std::set<int> children;
      for (int r = 0; r < ranks; ++r) {
        const TreePlace place = tree_place(ranks, r, tree);
        roots += place.up < 0;
        EXPECT_LE(place.down.size(), 2u);
        for (int d : place.down) {
          EXPECT_TRUE(children.insert(d).second) << d << " has two parents";
          EXPECT_EQ(tree_place(ranks, d, tree).up, r);
        }
      }
      EXPECT_EQ(roots, 1);
      EXPECT_EQ(children.size(), static_cast<std::size_t>(ranks - 1));
    }
  }
}

TEST(Bootstrap, GathersBroadcastsAndSplits) {
  LaunchOptions options;
  options.ranks = 5;
  std::vector<std::string> notes(5);
  options.on_note = [&](int rank, const std::string& text) {
    notes[static_cast<std::size_t>(rank)] = text;
  };
  const Status status = all_succeeded(launch(options, [](Bootstrap& b) -> Status {
    for (int round = 0; round < 20; ++round) {
      const int mine = b.rank() * 100 + round;
      std::vector<int> all(static_cast<std::size_t>(b.size()));
      if (Status s = b.all_gather(&mine, all.data(), sizeof mine); !s) return s;
      for (int r = 0; r < b.size(); ++r) {
        if (all[static_cast<std::size_t>(r)] != r * 100 + round) return internal_error("gather");
      }
      int word = b.rank() == 3 ? 42 + round : 0;
      if (Status s = b.broadcast(&word, sizeof word, 3); !s) return s;
      if (word != 42 + round) return internal_error("broadcast");
    }
    auto half = b.split(b.rank() % 2);
    if (!half) return half.status();
    if ((*half)->size() != (b.rank() % 2 == 0 ? 3 : 2)) return internal_error("split");
    if (Status s = (*half)->barrier(); !s) return s;
    return b.note("rank " + std::to_string((*half)->rank()));
  }));
  EXPECT_TRUE(status.is_ok()) << status.message();
  for (int r = 0; r < 5; ++r) {
    EXPECT_EQ(notes[static_cast<std::size_t>(r)], "rank " + std::to_string(r / 2));
  }
}

TEST(Bootstrap, ALostRankIsAnErrorNotAHang) {
  LaunchOptions options;
  options.ranks = 3;
  options.deadline_ms = 20000;
  const auto exits = launch(options, [](Bootstrap& b) -> Status {
    if (b.rank() == 1) raise(SIGKILL);
    const Status s = b.barrier();
    return s.code() == Code::kRemote ? Status::ok() : internal_error("no error");
  });
  ASSERT_TRUE(exits.is_ok()) << exits.status().message();
  EXPECT_EQ(exits.value()[0].code, 0);
  EXPECT_EQ(exits.value()[1].signal, SIGKILL);
  EXPECT_EQ(exits.value()[2].code, 0);
}

TEST(Launcher, EndsRanksThatDoNotEnd) {
  LaunchOptions options;
  options.ranks = 2;
  options.deadline_ms = 500;
  const auto begin = std::chrono::steady_clock::now();
  const auto exits = launch(options, [](Bootstrap&) -> Status {
    std::this_thread::sleep_for(std::chrono::minutes(10));
    return Status::ok();
  });
  EXPECT_FALSE(exits.is_ok());
  EXPECT_EQ(exits.status().code(), Code::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace riffle::host::parts_test
