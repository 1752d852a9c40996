// A process that is to encrypt and cannot: NCCL must neither take its next network, which is in the
// clear (2.19 on do where init or a device's properties fail), nor go on. So init succeeds, there
// is a device, and listen and connect end the job with the reason. Every case needs a process of
// its own (decline_test.cc).
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "plugin/abi/constants.h"
#include "test/abi/drive.h"
#include "test/rdma_folder.h"

namespace riffle::abi_encryption_test {
namespace {

using Environment = std::vector<std::pair<const char*, const char*>>;

class Refusal : public FreshProcessTest {
 protected:
  template <class Table>
  [[noreturn]] void refuses(const Environment& environment, const std::string& reason) {
    for (const auto& [name, value] : environment) ::setenv(name, value, 1);
    const Table& table = plugin.table<Table>();
    for (int communicator = 0; communicator < 2; ++communicator) {
      void* context = nullptr;
      EXPECT_EQ(drive::init(table, &context), 0);
      int count = 0;
      EXPECT_EQ(table.devices(&count), 0);
      EXPECT_EQ(count, 1);
      drive::PropertiesOf<Table> properties{};
      EXPECT_EQ(table.getProperties(0, &properties), 0) << "NCCL would take its next network";
      EXPECT_STREQ(properties.name, "refused");
      plugin.take_lines();
      std::array<char, 128> handle{};
      void* made = nullptr;
      EXPECT_NE(drive::listen(table, context, 0, handle.data(), &made), 0);
      EXPECT_NE(drive::connect(table, context, 0, handle.data(), &made), 0);
      const std::vector<std::string> lines = plugin.take_lines();
      EXPECT_EQ(lines.size(), 2u);
      for (const std::string& line : lines) EXPECT_NE(line.find(reason), std::string::npos) << line;
      EXPECT_EQ(drive::finalize(table, context), 0);
    }
    EXPECT_EQ(plugin.take_calls(), "") << "nothing listens or connects";
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  }
};

template <class Table>
class EveryNetRefuses : public Refusal {};
TYPED_TEST_SUITE(EveryNetRefuses, NetTables);

TYPED_TEST(EveryNetRefuses, AKeyFileThatIsNotThere) {
  EXPECT_EXIT(this->template refuses<TypeParam>(
                  {{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_KEY_FILE", "/absent/key"}},
                  "cannot read RIFFLE_KEY_FILE /absent/key"),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(Refusal, AKeyWithoutEncryption) {
  EXPECT_EXIT(refuses<abi::NetV12>({{"RIFFLE_KEY_FILE", "/absent/key"}},
                                   "has no use without RIFFLE_ENCRYPT=1"),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(Refusal, AValueThatIsNone) {
  EXPECT_EXIT(refuses<abi::NetV12>({{"RIFFLE_ENCRYPT", "aes"}}, "RIFFLE_ENCRYPT=aes"),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(Refusal, AMisspeltName) {
  EXPECT_EXIT(refuses<abi::NetV12>({{"RIFFLE_ENCRYPTION", "1"}}, "did you mean RIFFLE_ENCRYPT?"),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(Refusal, AnotherMisspeltName) {
  EXPECT_EXIT(refuses<abi::NetV12>({{"RIFFLE_ENCRPYT", "1"}}, "did you mean RIFFLE_ENCRYPT?"),
              ::testing::ExitedWithCode(0), "");
}

// Else the job would go on in the clear.
TEST_F(Refusal, ALineOfAFileThatIsNoSetting) {
  const std::string file = ::testing::TempDir() + "riffle-encrypt.conf";
  std::ofstream(file) << "RIFFLE_ENCRYPT: 1\n";
  EXPECT_EXIT(refuses<abi::NetV12>({{"RIFFLE_CONF_FILE", file.c_str()}},
                                   "\"RIFFLE_ENCRYPT: 1\" is not KEY=VALUE"),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(Refusal, AnotherLibraryAsNet) {
  EXPECT_EXIT(refuses<abi::NetV12>({{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_NET", "ofi"}},
                                   "RIFFLE_ENCRYPT=1 does not go with RIFFLE_NET=ofi"),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(Refusal, AnNcclThatForgetsThePluginBetweenCommunicators) {
  for (const char* const counts : {"", "0"}) {
    EXPECT_EXIT(
        refuses<abi::NetV11>({{"RIFFLE_ENCRYPT", "1"}, {"NCCL_NET_PLUGIN_REF_COUNT", counts}},
                             "needs NCCL_NET_PLUGIN_REF_COUNT=1"),
        ::testing::ExitedWithCode(0), "");
  }
}

TEST_F(Refusal, ANetworkThatWouldBeLeftToNccl) {
  const auto run = [&] {
    RdmaFolder folder;
    folder.add("mlx5_0", 1, "4: ACTIVE", "InfiniBand");
    const std::string ports = folder.path();
    for (const char* name : {"NCCL_NET", "NCCL_IB_DISABLE", "NCCL_IB_HCA"}) ::unsetenv(name);
    EXPECT_NE(::dlopen(RIFFLE_FAKE_IBVERBS, RTLD_NOW), nullptr) << ::dlerror();
    refuses<abi::NetV12>(
        {{"RIFFLE_ENCRYPT", "1"}, {"RIFFLE_NET", "auto"}, {"RIFFLE_RDMA_PORTS", ports.c_str()}},
        "NCCL's own InfiniBand transport is not encrypted");
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "");
}

class NoRefusal : public Refusal {
 protected:
  template <class Table>
  [[noreturn]] void takes(const char* counts) {
    ::setenv("RIFFLE_ENCRYPT", "1", 1);
    ::setenv("RIFFLE_NET", "tcp", 1);
    ::setenv("NCCL_NET_PLUGIN_REF_COUNT", counts, 1);
    void* context = nullptr;
    const auto& table = plugin.table<Table>();
    EXPECT_EQ(drive::init(table, &context), 0);
    drive::PropertiesOf<Table> properties{};
    EXPECT_EQ(table.getProperties(0, &properties), 0);
    EXPECT_STRNE(properties.name, "refused");
    EXPECT_EQ(drive::finalize(table, context), 0);
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  }
};

TEST_F(NoRefusal, WhereItCanBeKept) {
  EXPECT_EXIT(takes<abi::NetV12>("0"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(takes<abi::NetV11>("1"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(takes<abi::NetV10>("0"), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace riffle::abi_encryption_test
