// The tuner's decision, alone and through the tables of all versions.
#include "plugin/tuner/tuner.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "test/abi/fake_plugin.h"

namespace riffle::tuner_test {
namespace {

constexpr int kBroadcast = 0, kAllReduce = 4;
constexpr int kTree = 0, kRing = 1, kDirect = 2, kChain = 3, kNvls = 4, kNvlsTree = 5, kPat = 6;
constexpr int kLl = 0, kLl128 = 1, kSimple = 2;
constexpr std::size_t kThreshold = 65536;  // RIFFLE_COLLNET_MIN_BYTES by default

// NCCL's table with some entries as NCCL would predict them; the others unavailable.
class Table {
 public:
  explicit Table(int algorithms = 7) : costs_(static_cast<std::size_t>(algorithms) * 3, -1.0f) {
    set(kTree, kLl, 70).set(kTree, kSimple, 90).set(kRing, kLl, 60).set(kRing, kLl128, 50);
    set(kRing, kSimple, 80);
    if (algorithms > kPat) set(kPat, kSimple, 300);
  }
  Table& set(int algorithm, int protocol, float cost) {
    costs_[index(algorithm, protocol)] = cost;
    return *this;
  }
  float at(int algorithm, int protocol) const { return costs_[index(algorithm, protocol)]; }
  CostTable view() { return {costs_.data(), static_cast<int>(costs_.size()) / 3, 3}; }
  bool operator==(const Table&) const = default;

 private:
  static std::size_t index(int algorithm, int protocol) {
    return static_cast<std::size_t>(algorithm * 3 + protocol);
  }
  std::vector<float> costs_;
};

std::ostream& operator<<(std::ostream& out, const Table& table) {
  for (int a = 0; a < 6; ++a) {
    for (int p = 0; p < 3; ++p) out << table.at(a, p) << (p == 2 ? "; " : " ");
  }
  return out;
}

TEST(TunerDecision, ChoosesBySizeFunctionAndNodes) {
  const TunerSettings on{.is_enabled = true, .min_bytes = 1000};
  const TunerSettings off{.is_enabled = false, .min_bytes = 1000};
  EXPECT_EQ(choose_way(on, 2, kAllReduce, 1000), Way::kGroupPlan);
  EXPECT_EQ(choose_way(on, 2, kAllReduce, 999), Way::kNet);
  EXPECT_EQ(choose_way(off, 2, kAllReduce, 1u << 30), Way::kNet);
  EXPECT_EQ(choose_way(on, 1, kAllReduce, 1u << 30), Way::kNccl);
  EXPECT_EQ(choose_way(on, 0, kAllReduce, 1u << 30), Way::kNccl);
  for (int function = -1; function < 20; ++function) {
    if (function != kAllReduce) {
      EXPECT_EQ(choose_way(on, 8, function, 1u << 30), Way::kNccl) << function;
    }
  }
}

TEST(TunerDecision, TakesTheCheapestCollNetEntry) {
  struct Case {
    float direct, chain, nvls;
    int chosen;
  };
  for (const Case& c :
       {Case{-1, 500, -1, kChain}, Case{400, 500, -1, kDirect}, Case{500, 500, 500, kChain},
        Case{500, 600, 500, kDirect}, Case{-1, 500, 90, kNvls}, Case{-1, -1, 90, kNvls},
        Case{0, 500, -1, kDirect}}) {
    Table before;
    before.set(kDirect, kSimple, c.direct)
        .set(kChain, kSimple, c.chain)
        .set(kNvls, kSimple, c.nvls);
    before.set(kNvlsTree, kSimple, 10);
    Table after = before, expected = before;
    expected.set(c.chosen, kSimple, 0);
    EXPECT_TRUE(steer(Way::kGroupPlan, after.view()));
    EXPECT_EQ(after, expected);
  }
}

TEST(TunerDecision, AvoidsCollNetOnlyIfSomethingElseIsLeft) {
  Table table, expected;
  table.set(kDirect, kSimple, 5).set(kChain, kSimple, 6).set(kNvls, kSimple, 7);
  table.set(kNvlsTree, kSimple, 8);
  expected.set(kNvlsTree, kSimple, 8);
  EXPECT_TRUE(steer(Way::kNet, table.view()));
  EXPECT_EQ(table, expected);

  for (const int left : {kTree, kRing, -1}) {
    Table bare(7);
    for (int a = 0; a < 7; ++a) {
      for (int p = 0; p < 3; ++p) bare.set(a, p, -1);
    }
    bare.set(kChain, kSimple, 6).set(kPat, kSimple, 1);
    if (left >= 0) bare.set(left, kLl128, 9);
    const Table before = bare;
    EXPECT_EQ(steer(Way::kNet, bare.view()), left >= 0);
    EXPECT_EQ(bare.at(kChain, kSimple), left >= 0 ? -1.0f : 6.0f);
    if (left < 0) {
      EXPECT_EQ(bare, before);
    }
  }
}

TEST(TunerDecision, LeavesTablesAlone) {
  for (const Way way : {Way::kNccl, Way::kGroupPlan, Way::kNet}) {
    Table without_collnet;  // also what a failed COLLNET connect leads to
    const Table before = without_collnet;
    EXPECT_FALSE(steer(way, without_collnet.view()));
    EXPECT_EQ(without_collnet, before);
    // Shapes of no known release, and no table at all.
    Table table;
    table.set(kChain, kSimple, 500);
    const Table unchanged = table;
    for (const auto& [algorithms, protocols] :
         {std::array{5, 3}, {8, 3}, {0, 0}, {-1, 3}, {7, 2}, {7, 4}}) {
      EXPECT_FALSE(steer(way, {table.view().costs, algorithms, protocols}));
    }
    EXPECT_FALSE(steer(way, {nullptr, 7, 3}));
    EXPECT_EQ(table, unchanged);
  }
  Table table;
  table.set(kChain, kSimple, 500);
  EXPECT_FALSE(steer(Way::kNccl, table.view()));
  EXPECT_TRUE(steer(Way::kGroupPlan, table.view()));
}

// -- through the tables

template <class Tuner>
class TunerTable : public FakePluginTest {
 protected:
  static constexpr bool kHasCosts =
      std::is_same_v<Tuner, abi::TunerV3> || std::is_same_v<Tuner, abi::TunerV4> ||
      std::is_same_v<Tuner, abi::TunerV5> || std::is_same_v<Tuner, abi::TunerV6>;

  void* start(std::size_t nodes) {
    void* context = reinterpret_cast<void*>(0xdead);
    if constexpr (std::is_same_v<Tuner, abi::TunerV1>) {
      EXPECT_EQ(tuner.init(16, nodes, FakePlugin::logger), 0);
    } else if constexpr (requires { tuner.destroy; }) {
      EXPECT_EQ(tuner.init(16, nodes, FakePlugin::logger, &context), 0);
    } else {
      EXPECT_EQ(tuner.init(&context, 0xabc, 16, nodes, FakePlugin::logger, nullptr, nullptr), 0);
    }
    return context;
  }
  void end(void* context) {
    if constexpr (std::is_same_v<Tuner, abi::TunerV1>) {
      EXPECT_EQ(tuner.destroy(), 0);
    } else if constexpr (requires { tuner.destroy; }) {
      EXPECT_EQ(tuner.destroy(context), 0);
    } else {
      EXPECT_EQ(tuner.finalize(context), 0);
    }
  }

  // v1 and v2: what was named, {-1, -1} if nothing.
  std::array<int, 2> name(void* context, int function, std::size_t bytes, int collnet_support) {
    std::array<int, 2> named = {-1, -1};
    int channels = 0;
    if constexpr (std::is_same_v<Tuner, abi::TunerV1>) {
      EXPECT_EQ(tuner.getCollInfo(function, bytes, collnet_support, 0, 1, &named[0], &named[1],
                                  &channels),
                0);
    } else if constexpr (!kHasCosts) {
      EXPECT_EQ(tuner.getCollInfo(context, function, bytes, collnet_support, 0, 1, &named[0],
                                  &named[1], &channels),
                0);
    }
    EXPECT_EQ(channels, 0);
    return named;
  }

  // v3 on: the table after the call.
  Table bend(void* context, int function, std::size_t bytes, Table table) {
    int channels = 0;
    auto** costs = reinterpret_cast<float**>(table.view().costs);
    if constexpr (std::is_same_v<Tuner, abi::TunerV3>) {
      EXPECT_EQ(tuner.getCollInfo(context, function, bytes, 1, costs, table.view().algorithms, 3,
                                  &channels),
                0);
    } else if constexpr (kHasCosts) {
      EXPECT_EQ(tuner.getCollInfo(context, function, bytes, 1, costs, table.view().algorithms, 3, 0,
                                  &channels),
                0);
    }
    EXPECT_EQ(channels, 0);
    return table;
  }

  const Tuner& tuner = FakePlugin::get().table<Tuner>();
};
TYPED_TEST_SUITE(TunerTable, TunerTables);

TYPED_TEST(TunerTable, SteersLargeAllReducesOfSeveralNodes) {
  void* several = this->start(4);
  if constexpr (!TestFixture::kHasCosts) {
    EXPECT_EQ(this->name(several, kAllReduce, kThreshold, 1), (std::array{kChain, kSimple}));
    EXPECT_EQ(this->name(several, kAllReduce, kThreshold, 0), (std::array{-1, -1}));
    EXPECT_EQ(this->name(several, kAllReduce, kThreshold - 1, 1), (std::array{-1, -1}));
    EXPECT_EQ(this->name(several, kBroadcast, kThreshold, 1), (std::array{-1, -1}));
  } else {
    for (const int algorithms : {6, 7}) {
      Table offered(algorithms);
      offered.set(kChain, kSimple, 500);
      Table chosen = offered, avoided = offered;
      chosen.set(kChain, kSimple, 0);
      avoided.set(kChain, kSimple, -1);
      EXPECT_EQ(this->bend(several, kAllReduce, kThreshold, offered), chosen);
      EXPECT_EQ(this->bend(several, kAllReduce, kThreshold - 1, offered), avoided);
      EXPECT_EQ(this->bend(several, kBroadcast, kThreshold, offered), offered);
      EXPECT_EQ(this->bend(several, kAllReduce, kThreshold, Table(algorithms)), Table(algorithms));
    }
  }
  this->end(several);
}

TYPED_TEST(TunerTable, HasNoOpinionWithinOneNodeOrWithoutContext) {
  void* one = this->start(1);
  if constexpr (TestFixture::kHasCosts) {
    Table offered;
    offered.set(kChain, kSimple, 500);
    for (void* context : {one, static_cast<void*>(nullptr)}) {
      EXPECT_EQ(this->bend(context, kAllReduce, kThreshold, offered), offered);
      EXPECT_EQ(this->bend(context, kAllReduce, 8, offered), offered);
    }
  } else {
    // NCCL offers no CollNet within one node.
    EXPECT_EQ(this->name(one, kAllReduce, kThreshold, 0), (std::array{-1, -1}));
    if constexpr (!std::is_same_v<TypeParam, abi::TunerV1>) {
      EXPECT_EQ(this->name(one, kAllReduce, kThreshold, 1), (std::array{-1, -1}));
      EXPECT_EQ(this->name(nullptr, kAllReduce, kThreshold, 1), (std::array{-1, -1}));
    }
  }
  this->end(one);
}

TYPED_TEST(TunerTable, LeavesChunkSizesAlone) {
  if constexpr (requires { this->tuner.getChunkSize; }) {
    std::size_t chunk = 12345;
    EXPECT_EQ(this->tuner.getChunkSize(nullptr, kAllReduce, 1 << 20, kChain, kSimple, 2, &chunk),
              0);
    EXPECT_EQ(chunk, 12345u);
  }
}

// The switch is read from the environment once per process, so this needs a fresh process, which
// the "threadsafe" style starts.
TYPED_TEST(TunerTable, SwitchedOffItAvoidsCollNetAtEverySize) {
  if (std::getenv("RIFFLE_TEST_EMULATED") != nullptr) {
    GTEST_SKIP() << "a program under qemu-user cannot start itself anew";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto avoids_collnet = [&] {
    ::setenv("RIFFLE_COLLNET", "off", 1);
    void* context = this->start(4);
    bool is_avoided = false;
    if constexpr (TestFixture::kHasCosts) {
      Table offered, avoided;
      offered.set(kChain, kSimple, 500);
      is_avoided = this->bend(context, kAllReduce, 1 << 30, offered) == avoided;
    } else {
      is_avoided = this->name(context, kAllReduce, 1 << 30, 1) == std::array{-1, -1};
    }
    this->end(context);
    return is_avoided;
  };
  EXPECT_EXIT(std::exit(avoids_collnet() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace riffle::tuner_test
