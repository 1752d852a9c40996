// Where NCCL has a transport of its own for an RDMA port: NET and COLLNET of every version decline
// at init, the tuner has no opinion, one line says why. Where another plugin has, they warn. What a
// process finds is kept, so every case needs a process of its own, which the "threadsafe" style
// starts.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "plugin/abi/constants.h"
#include "test/abi/drive.h"
#include "test/rdma_folder.h"

namespace riffle::decline_test {
namespace {

constexpr int kAllReduce = 4, kChain = 3, kSimple = 2;

// A machine with such a port, for this process.
class Machine {
 public:
  explicit Machine(const std::string& device = "mlx5_0",
                   const std::string& link_layer = "InfiniBand") {
    folder_.add(device, 1, "4: ACTIVE", link_layer);
    ::setenv("RIFFLE_RDMA_PORTS", folder_.path().c_str(), 1);
    ::setenv("RIFFLE_NET", "auto", 1);
    for (const char* name : {"NCCL_NET", "NCCL_IB_DISABLE", "NCCL_IB_HCA"}) ::unsetenv(name);
    // From now on the loader finds it by its name.
    EXPECT_NE(::dlopen(RIFFLE_FAKE_IBVERBS, RTLD_NOW), nullptr) << ::dlerror();
  }

 private:
  RdmaFolder folder_;
};

void* stale() { return reinterpret_cast<void*>(0xdead); }

// Ends the process: 0 if all that was expected came true.
[[noreturn]] void finish() { std::exit(::testing::Test::HasFailure() ? 1 : 0); }

class Decline : public FreshProcessTest {
 protected:
  // One line, however often a table was asked; and no warning.
  void expect_one_line() {
    EXPECT_TRUE(plugin.take_lines().empty());
    const std::vector<std::string> lines = plugin.take_infos();
    ASSERT_EQ(lines.size(), 1u);
    EXPECT_NE(lines[0].find("mlx5_0:1 (InfiniBand); the network is left to NCCL"),
              std::string::npos)
        << lines[0];
  }
};

template <class Table>
class NetworkDeclines : public Decline {
 protected:
  void declines() {
    {
      const Machine machine;
      const Table& table = plugin.table<Table>();
      for (int i = 0; i < 2; ++i) {
        void* context = stale();
        EXPECT_EQ(drive::init(table, &context), abi::kInternalError);
        if (!drive::kHasContext<Table>) continue;
        EXPECT_EQ(context, nullptr);
        EXPECT_EQ(drive::finalize(table, nullptr), 0) << "2.28 does so after a failed init";
      }
      EXPECT_EQ(plugin.take_calls(), "");
      expect_one_line();
    }
    finish();
  }
};
using NetworkTables =
    ::testing::Types<abi::NetV5, abi::NetV6, abi::NetV7, abi::NetV8, abi::NetV9, abi::NetV10,
                     abi::NetV11, abi::NetV12, abi::CollNetV5, abi::CollNetV6, abi::CollNetV7,
                     abi::CollNetV8, abi::CollNetV9, abi::CollNetV10, abi::CollNetV11,
                     abi::CollNetV12>;
TYPED_TEST_SUITE(NetworkDeclines, NetworkTables);

TYPED_TEST(NetworkDeclines, AtInit) {
  EXPECT_EXIT(this->declines(), ::testing::ExitedWithCode(0), "");
}

template <class Tuner>
class TunerDeclines : public Decline {
 protected:
  static constexpr bool kIsFirst = std::is_same_v<Tuner, abi::TunerV1>;

  void has_no_opinion() {
    {
      const Machine machine;
      void* context = stale();
      start(&context);
      EXPECT_EQ(context, kIsFirst ? stale() : nullptr);
      std::vector<float> costs(21, 10.0f);
      costs[kChain * 3 + kSimple] = 500;
      const std::vector<float> before = costs;
      int algorithm = -1, protocol = -1, channels = 0;
      for (const std::size_t bytes : {8UL, 1UL << 30}) {
        EXPECT_EQ(ask(context, bytes, costs.data(), &algorithm, &protocol, &channels), 0);
      }
      EXPECT_EQ(costs, before);
      EXPECT_EQ(algorithm, -1);
      EXPECT_EQ(protocol, -1);
      expect_one_line();
    }
    finish();
  }

 private:
  void start(void** context) {
    if constexpr (kIsFirst) {
      EXPECT_EQ(tuner.init(16, 4, FakePlugin::logger), 0);
    } else if constexpr (requires { tuner.destroy; }) {
      EXPECT_EQ(tuner.init(16, 4, FakePlugin::logger, context), 0);
      EXPECT_EQ(tuner.destroy(nullptr), 0);
    } else {
      EXPECT_EQ(tuner.init(context, 0xabc, 16, 4, FakePlugin::logger, nullptr, nullptr), 0);
      EXPECT_EQ(tuner.finalize(nullptr), 0);
    }
  }
  int ask(void* context, std::size_t bytes, float* costs, int* algorithm, int* protocol,
          int* channels) {
    [[maybe_unused]] auto** table = reinterpret_cast<float**>(costs);
    if constexpr (kIsFirst) {
      return tuner.getCollInfo(kAllReduce, bytes, 1, 0, 1, algorithm, protocol, channels);
    } else if constexpr (std::is_same_v<Tuner, abi::TunerV2>) {
      return tuner.getCollInfo(context, kAllReduce, bytes, 1, 0, 1, algorithm, protocol, channels);
    } else if constexpr (std::is_same_v<Tuner, abi::TunerV3>) {
      return tuner.getCollInfo(context, kAllReduce, bytes, 1, table, 7, 3, channels);
    } else {
      return tuner.getCollInfo(context, kAllReduce, bytes, 1, table, 7, 3, 0, channels);
    }
  }

  const Tuner& tuner = FakePlugin::get().table<Tuner>();
};
TYPED_TEST_SUITE(TunerDeclines, TunerTables);

TYPED_TEST(TunerDeclines, ByHavingNoOpinion) {
  EXPECT_EXIT(this->has_no_opinion(), ::testing::ExitedWithCode(0), "");
}

// EFA: NCCL has no transport of its own for it, and the cluster's plugin is not there as long as
// Riffle is.
TEST_F(Decline, NotForAPortOfAnotherPluginWhichIsAWarningThatSaysWhatToSet) {
  const auto works = [&] {
    {
      const Machine machine("efa_0", "Unspecified");
      void *net = nullptr, *collnet = nullptr;
      EXPECT_EQ(drive::init(plugin.table<abi::NetV12>(), &net), 0);
      EXPECT_EQ(drive::init(plugin.table<abi::CollNetV12>(), &collnet), 0);
      const std::vector<std::string> lines = plugin.take_lines();
      EXPECT_EQ(lines.size(), 1u);
      if (!lines.empty()) {
        EXPECT_NE(lines[0].find("efa_0:1 (Unspecified)"), std::string::npos) << lines[0];
        EXPECT_NE(lines[0].find("RIFFLE_NET=ofi"), std::string::npos) << lines[0];
      }
      EXPECT_EQ(drive::finalize(plugin.table<abi::NetV12>(), net), 0);
      EXPECT_EQ(drive::finalize(plugin.table<abi::CollNetV12>(), collnet), 0);
    }
    finish();
  };
  EXPECT_EXIT(works(), ::testing::ExitedWithCode(0), "");
}

TEST_F(Decline, NotWhereTcpIsWanted) {
  const auto works = [&] {
    {
      const Machine machine;
      ::setenv("RIFFLE_NET", "tcp", 1);
      void *net = nullptr, *collnet = nullptr;
      EXPECT_EQ(drive::init(plugin.table<abi::NetV12>(), &net), 0);
      EXPECT_EQ(drive::init(plugin.table<abi::CollNetV12>(), &collnet), 0);
      EXPECT_NE(net, nullptr);
      EXPECT_NE(collnet, nullptr);
      EXPECT_TRUE(plugin.take_infos().empty());
      EXPECT_EQ(drive::finalize(plugin.table<abi::NetV12>(), net), 0);
      EXPECT_EQ(drive::finalize(plugin.table<abi::CollNetV12>(), collnet), 0);
    }
    finish();
  };
  EXPECT_EXIT(works(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace riffle::decline_test
