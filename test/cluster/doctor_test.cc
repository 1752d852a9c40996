// `riffle doctor` on several hosts: one with another version, one with another setting, and a pair
// that does not reach each other are all named.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lab/cluster/agent.h"
#include "lab/cluster/command.h"
#include "lab/cluster/network.h"
#include "plugin/version.h"

namespace riffle::cluster::doctor_test {
namespace {

namespace fs = std::filesystem;

class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    std::string folder = (fs::temp_directory_path() / "doctor-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    auto made = Cluster::create(even_profile(4, 200'000));
    ASSERT_TRUE(made) << made.status().message();
    cluster_ = std::move(*made);
    ASSERT_TRUE(write_agent(folder_ + "/agent", *cluster_));
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  // In place of ssh: the agent, but on one host through `filter`, where it is one.
  std::string agent(const std::string& host = "", const std::string& filter = "") {
    const std::string path = folder_ + "/ssh";
    std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = '" << host << "' ] && { " << folder_
                        << "/agent \"$@\" " << filter << "; exit; }\nexec " << folder_
                        << "/agent \"$@\"\n";
    chmod(path.c_str(), 0700);
    return path;
  }

  struct Ended {
    int code = -1;
    std::string out;
    bool says(const std::string& text) const { return out.find(text) != std::string::npos; }
    // The line that begins with `text` as a problem; empty: there is none.
    std::string problem(const std::string& text) const {
      const std::size_t at = out.find("WRONG " + text);
      return at == std::string::npos ? "" : out.substr(at, out.find('\n', at) - at);
    }
  };
  Ended doctor(const std::string& arguments, const std::string& hosts = "node0,node1,node2,node3") {
    const std::string build = fs::path(RIFFLE_COMMAND).parent_path().parent_path() / "plugin";
    const auto text = run_command(
        {"sh", "-c",
         "HOME=/nonexistent NCCL_CONF_FILE=/dev/null RIFFLE_RDMA_PORTS=" + folder_ +
             " NCCL_NET_PLUGIN=riffle NCCL_TUNER_PLUGIN=riffle NCCL_PROFILER_PLUGIN=riffle "
             "NCCL_COLLNET_ENABLE=1 NCCL_COMM_SPLIT_SHARE_RESOURCES=1 NCCL_NET_PLUGIN_REF_COUNT=1 "
             "LD_LIBRARY_PATH=" +
             build + " " + RIFFLE_COMMAND + " doctor --nccl 2.28.9 --hosts " + hosts + " " +
             arguments + " >" + folder_ + "/out 2>&1; echo $?"},
        "", 100000);
    Ended ended;
    if (text) ended.code = std::stoi(*text);
    std::ostringstream out;
    out << std::ifstream(folder_ + "/out").rdbuf();
    ended.out = out.str();
    return ended;
  }

  // Neither reaches the other, as behind a firewall that drops without a word: frames go to a card
  // that there is not.
  void block(int a, int b) {
    for (const auto& [node, other] : {std::pair{a, b}, std::pair{b, a}}) {
      const auto done = run_command({folder_ + "/agent", "node" + std::to_string(node),
                                     "ip neighbour replace " + address_of(other) +
                                         " lladdr 02:00:00:00:ff:ff dev eth0 nud permanent"},
                                    "", 5000);
      ASSERT_TRUE(done) << done.status().message();
    }
  }

  // That node1 and node3 are those that do not reach each other.
  static void expect_pair_named(const Ended& ended) {
    const std::string said = ended.problem("the hosts do not all reach each other: ");
    EXPECT_TRUE(said.find("node1") != said.npos) << ended.out;
    EXPECT_TRUE(said.find("node3") != said.npos) << ended.out;
  }

  std::string folder_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(DoctorTest, HostsThatAgreeAndReachEachOther) {
  const Ended ended = doctor("--ssh " + agent());
  EXPECT_EQ(ended.code, 0) << ended.out;
  EXPECT_TRUE(ended.says("all pairs of 4 hosts connect")) << ended.out;
  EXPECT_TRUE(ended.says("no problem\n")) << ended.out;
  for (const char* host : {"\nnode0 ", "\nnode1 ", "\nnode2 ", "\nnode3 "}) {
    EXPECT_TRUE(ended.says(host)) << ended.out;
  }
}

TEST_F(DoctorTest, AnotherVersion) {
  const std::string version = kVersion;
  const Ended ended = doctor("--ssh " + agent("node1", "| sed -u 's/\"version\":\"" + version +
                                                           "\"/\"version\":\"0.0.9\"/'"));
  EXPECT_EQ(ended.code, 1) << ended.out;
  EXPECT_TRUE(ended.says("Riffle's version differs: " + version +
                         " on node0, node2, node3; 0.0.9 on node1"))
      << ended.out;
  EXPECT_TRUE(ended.says("remedy: install the same version everywhere")) << ended.out;
}

TEST_F(DoctorTest, AnotherSetting) {
  const std::string path = agent();
  std::ofstream(path) << "#!/bin/sh\nhost=$1; shift\n[ $host = node2 ] && set -- env "
                         "RIFFLE_STREAMS=4 \"$@\"\nexec "
                      << folder_ << "/agent $host \"$@\"\n";
  const Ended ended = doctor("--json --ssh " + path);
  EXPECT_EQ(ended.code, 1) << ended.out;
  const auto found = nlohmann::json::parse(ended.out, nullptr, false);
  ASSERT_TRUE(found.is_object()) << ended.out;
  EXPECT_EQ(found["schema"], "riffle-doctor-hosts-1");
  EXPECT_GE(found["problems"], 1) << ended.out;
  EXPECT_EQ(found["hosts"].size(), 4u);
  EXPECT_TRUE(ended.says("RIFFLE_STREAMS differs: 0 on node0, node1, node3; 4 on node2"))
      << ended.out;
}

TEST_F(DoctorTest, APairThatDoesNotReachEachOther) {
  for (const auto& [node, other] : {std::pair{1, 3}, std::pair{3, 1}}) {
    const auto done = run_command({folder_ + "/agent", "node" + std::to_string(node),
                                   "ip route add unreachable " + address_of(other) + "/32"},
                                  "", 5000);
    ASSERT_TRUE(done) << done.status().message();
  }
  const Ended ended = doctor("--timeout 8 --ssh " + agent());
  EXPECT_EQ(ended.code, 1) << ended.out;
  expect_pair_named(ended);
}

TEST_F(DoctorTest, AFirewallThatDropsWithoutAWord) {
  block(1, 3);
  const Ended ended = doctor("--timeout 8 --ssh " + agent());
  EXPECT_EQ(ended.code, 1) << ended.out;
  expect_pair_named(ended);
}

// None of the three hides another.
TEST_F(DoctorTest, AnotherVersionAnotherSettingAndABlockedPair) {
  block(1, 3);
  const std::string version = kVersion;
  const std::string path = agent();
  std::ofstream(path) << "#!/bin/sh\nhost=$1; shift\n[ $host = node2 ] && set -- env "
                         "RIFFLE_STREAMS=4 \"$@\"\n[ $host = node0 ] || exec "
                      << folder_ << "/agent $host \"$@\"\n"
                      << folder_ << "/agent $host \"$@\" | sed -u 's/\"version\":\"" << version
                      << "\"/\"version\":\"0.0.9\"/'\n";
  const Ended ended = doctor("--timeout 8 --ssh " + path);
  EXPECT_EQ(ended.code, 1) << ended.out;
  EXPECT_TRUE(ended.says("Riffle's version differs: " + version +
                         " on node1, node2, node3; 0.0.9 on node0"))
      << ended.out;
  EXPECT_TRUE(ended.says("RIFFLE_STREAMS differs: 0 on node0, node1, node3; 4 on node2"))
      << ended.out;
  expect_pair_named(ended);
}

TEST_F(DoctorTest, AHostThatDoesNotCome) {
  const Ended ended = doctor("--ssh " + agent(), "node0,node1,nowhere");
  EXPECT_EQ(ended.code, 1) << ended.out;
  EXPECT_TRUE(ended.says("nowhere takes no part: ended, exit code 1: no such node: nowhere"))
      << ended.out;
  EXPECT_TRUE(ended.says("all pairs of 2 hosts connect")) << ended.out;
}

}  // namespace
}  // namespace riffle::cluster::doctor_test
