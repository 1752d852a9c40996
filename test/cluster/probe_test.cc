// `riffle probe` end to end over shaped links, with a script in place of ssh: it finds what is
// slow, names who is missing, goes on without a host that is lost, and leaves nothing behind.
#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "lab/cluster/agent.h"
#include "lab/cluster/command.h"
#include "lab/cluster/network.h"
#include "plugin/collective/base/node_lock.h"
#include "topology/fabric/fabric_file.h"

namespace riffle::cluster::probe_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNodes = 5;
constexpr int kSlowNode = 3;

class ProbeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    std::string folder = (std::filesystem::temp_directory_path() / "probe-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    Profile profile = even_profile(kNodes, 200'000);
    profile.rates[kSlowNode] = {50'000, 50'000};
    auto made = Cluster::create(profile);
    ASSERT_TRUE(made) << made.status().message();
    cluster_ = std::move(*made);
    ASSERT_TRUE(write_agent(folder_ + "/agent", *cluster_));
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  struct Ended {
    int code = -1;
    std::string out, err;
    double seconds = 0;
  };
  // `riffle probe ARGUMENTS`, with the shell's own way of ending kept apart from its output.
  Ended probe(const std::string& arguments) {
    const auto begin = Clock::now();
    const auto text = run_command({"sh", "-c",
                                   std::string(RIFFLE_COMMAND) + " probe " + arguments + " >" +
                                       folder_ + "/out 2>" + folder_ + "/err; echo $?"},
                                  "", 100000);
    Ended ended;
    if (text) ended.code = std::stoi(*text);
    ended.out = content("/out");
    ended.err = content("/err");
    ended.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return ended;
  }
  std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + name).rdbuf();
    return text.str();
  }
  // The agent, but what it runs on one host is started through `wrapper`.
  std::string agent_with(const std::string& host, const std::string& wrapper) {
    const std::string path = folder_ + "/agent-" + host;
    std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = " << host << " ] && exec " << wrapper << "\nexec "
                        << folder_ << "/agent \"$@\"\n";
    chmod(path.c_str(), 0700);
    return "--ssh " + path + " ";
  }
  std::string agent() const { return "--ssh " + folder_ + "/agent "; }
  static std::string hosts() { return "node0 node1 node2 node3 node4"; }

  // Processes in a node's namespace, without the one that holds it.
  std::vector<pid_t> processes(int node) const {
    const pid_t holder = cluster_->holders()[static_cast<std::size_t>(node)];
    struct stat there {};
    stat(("/proc/" + std::to_string(holder) + "/ns/net").c_str(), &there);
    std::vector<pid_t> found;
    DIR* proc = opendir("/proc");
    while (const dirent* entry = readdir(proc)) {
      const std::string name = entry->d_name;
      struct stat info {};
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (stat(("/proc/" + name + "/ns/net").c_str(), &info) != 0) continue;
      if (info.st_ino == there.st_ino && std::stoi(name) != holder)
        found.push_back(std::stoi(name));
    }
    closedir(proc);
    return found;
  }
  std::size_t nodes_with_processes() const {
    std::size_t nodes = 0;
    for (int n = 0; n < kNodes; ++n) nodes += processes(n).empty() ? 0 : 1;
    return nodes;
  }
  void expect_nothing_left() const {
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (nodes_with_processes() > 0 && Clock::now() < deadline) usleep(20000);
    EXPECT_EQ(nodes_with_processes(), 0u);
  }

  std::string folder_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(ProbeTest, FindsTheSlowNode) {
  const std::string fabric = folder_ + "/fabric.toml";
  const Ended ended =
      probe(agent() + "--json --svg " + folder_ + "/map.svg --fabric " + fabric + " " + hosts());
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto found = nlohmann::json::parse(ended.out);
  ASSERT_EQ(found.at("nodes").size(), static_cast<std::size_t>(kNodes));
  for (int n = 0; n < kNodes; ++n) {
    const auto& node = found.at("nodes").at(static_cast<std::size_t>(n));
    EXPECT_EQ(node.at("name"), "node" + std::to_string(n));
    // How exact rates are is for bench/probe_check.py; here other tests may run beside.
    for (const char* end : {"out_mbps", "in_mbps"}) {
      EXPECT_GT(node.at(end), n == kSlowNode ? 25 : 120) << node;
      EXPECT_LT(node.at(end), n == kSlowNode ? 80 : 240) << node;
    }
  }
  ASSERT_GE(found.at("slow").size(), 2u);
  for (const std::size_t worst : {0u, 1u}) {
    const std::string line = found.at("slow").at(worst);
    EXPECT_NE(line.find("of node node3: "), std::string::npos) << line;
  }
  // One sample of 50 ms per pair on a machine that does other things too: which kind it is.
  for (std::size_t from = 0; from < kNodes; ++from) {
    for (std::size_t to = 0; to < kNodes; ++to) {
      const double mbps = found.at("pair_mbps").at(from).at(to);
      if (from == to) {
        EXPECT_EQ(mbps, 0);
      } else if (from == kSlowNode || to == kSlowNode) {
        EXPECT_LT(mbps, 100) << from << " to " << to;
        EXPECT_GT(mbps, 20) << from << " to " << to;
      } else {
        EXPECT_GT(mbps, 100) << from << " to " << to;
      }
    }
  }
  EXPECT_NE(content("/map.svg").find("node0 to node3"), std::string::npos);
  std::vector<NodeAliases> names;
  for (int n = 0; n < kNodes; ++n) names.push_back({"node" + std::to_string(n)});
  const Result<LoadedFabric> loaded = load_fabric(fabric, names);
  ASSERT_TRUE(loaded) << loaded.status().message();
  EXPECT_TRUE(loaded->notes.empty());
  EXPECT_LT(2 * loaded->fabric.nodes[kSlowNode].out_kbps, loaded->fabric.nodes[0].out_kbps);
  expect_nothing_left();
}

TEST_F(ProbeTest, SomebodyMissingIsNamedAndTheOthersMeasured) {
  const std::string arguments =
      agent_with("node9", "sh -c 'echo Connection refused >&2; exit 255'") + "node0 node9 node3";
  Ended ended = probe(arguments);
  // Two nodes have few rounds of 50 ms; a machine that is busy may let nothing through in them.
  for (int i = 0; i < 3 && ended.err.find("nothing arrived") != std::string::npos; ++i) {
    ended = probe(arguments);
  }
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.out.find("absent: node9: ended, exit code 255: Connection refused"),
            std::string::npos)
      << ended.out << ended.err;
  EXPECT_NE(ended.out.find("2 nodes"), std::string::npos) << ended.out;
}

TEST_F(ProbeTest, AHostThatDiesMeanwhileIsNamedAndTheOthersMeasured) {
  const Ended ended =
      probe(agent_with("node2", "timeout -s KILL 0.5 " + folder_ + "/agent \"$@\"") +
            "--timeout 20 " + hosts());
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.out.find("absent: node2: "), std::string::npos) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("4 nodes"), std::string::npos) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("slow: sending of node node3"), std::string::npos) << ended.out;
  EXPECT_LT(ended.seconds, 20);
  expect_nothing_left();
}

TEST_F(ProbeTest, AHostThatStopsIsNamedByTheDeadline) {
  std::thread stopper([this] {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (nodes_with_processes() < kNodes && Clock::now() < deadline) usleep(5000);
    usleep(400'000);  // in the middle of a measurement of one second
    for (const pid_t pid : processes(1)) kill(pid, SIGSTOP);
  });
  const Ended ended = probe(agent() + "--timeout 5 " + hosts());
  stopper.join();
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_NE(ended.out.find("absent: node1: no answer within"), std::string::npos)
      << ended.out << ended.err;
  EXPECT_NE(ended.out.find("4 nodes"), std::string::npos) << ended.out << ended.err;
  EXPECT_LT(ended.seconds, 30);
  for (const pid_t pid : processes(1)) kill(pid, SIGCONT);  // it wakes up, and nobody is there
  expect_nothing_left();
}

TEST_F(ProbeTest, FewerThanTwoIsAnErrorThatNamesThem) {
  const Ended ended = probe(agent() + "node0 nowhere");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("nowhere: ended, exit code 1: no such node: nowhere"), std::string::npos)
      << ended.err;
  EXPECT_EQ(ended.out, "");
  expect_nothing_left();
}

TEST_F(ProbeTest, WrongUsageNamesWhatIsAccepted) {
  for (const auto& [arguments, named] :
       {std::pair{"node0", "2 to 1024 hosts are accepted, not 1"},
        std::pair{"a b a", "host a is named twice"},
        std::pair{"a -oProxyCommand=x", "probe has no option -oProxyCommand"},
        std::pair{"a 'b;c'", "'b;c' is no host"}, std::pair{"--timeout 0 a b", "--timeout"},
        std::pair{"", "needs hosts"}}) {
    const Ended ended = probe(arguments);
    EXPECT_EQ(ended.code, 2) << arguments;
    EXPECT_NE(ended.err.find(named), std::string::npos) << arguments << ": " << ended.err;
  }
}

TEST_F(ProbeTest, NothingIsLeftWhenTheCommandIsKilled) {
  const pid_t pid = fork();
  if (pid == 0) {
    const std::string ssh = folder_ + "/agent";
    freopen("/dev/null", "w", stdout);
    execl(RIFFLE_COMMAND, RIFFLE_COMMAND, "probe", "--ssh", ssh.c_str(), "node0", "node1", "node2",
          "node3", "node4", nullptr);
    _exit(127);
  }
  const auto deadline = Clock::now() + std::chrono::seconds(10);
  while (nodes_with_processes() < kNodes && Clock::now() < deadline) usleep(5000);
  EXPECT_EQ(nodes_with_processes(), static_cast<std::size_t>(kNodes));
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  expect_nothing_left();
}

// Somebody else probes on node 2 for a while, or for ever.
class TurnTaker {
 public:
  TurnTaker(const Cluster& cluster, int node) {
    int told[2];
    if (pipe(told) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      const bool is_there = cluster.enter(node).is_ok();
      const NodeLock held = is_there ? try_node_lock(4711) : nullptr;
      const char byte = held ? 1 : 0;
      if (write(told[1], &byte, 1) != 1) _exit(1);
      while (true) pause();
    }
    char byte = 0;
    has_turn_ = read(told[0], &byte, 1) == 1 && byte == 1;
    close(told[0]);
    close(told[1]);
  }
  ~TurnTaker() { end(); }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  bool has_turn() const { return has_turn_; }

 private:
  pid_t pid_ = 0;
  bool has_turn_ = false;
};

TEST_F(ProbeTest, WaitsForItsTurn) {
  TurnTaker other(*cluster_, 2);
  ASSERT_TRUE(other.has_turn());
  std::thread soon([&other] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    other.end();
  });
  const Ended ended = probe(agent() + hosts());
  soon.join();
  EXPECT_GT(ended.seconds, 1.4);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("sending of node node3"), std::string::npos) << ended.out;
}

TEST_F(ProbeTest, SaysSoWhenItsTurnNeverComes) {
  const TurnTaker other(*cluster_, 2);
  ASSERT_TRUE(other.has_turn());
  const Ended ended = probe(agent() + "--timeout 8 " + hosts());
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("others were probing this network all the time"), std::string::npos)
      << ended.err;
}

// As under torchrun: rank and size from the environment, rank 0 where MASTER_ADDR says.
TEST_F(ProbeTest, MeetsUnderALauncher) {
  std::vector<pid_t> ranks;
  for (int n = 0; n < kNodes; ++n) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (!cluster_->enter(n)) _exit(99);
      setenv("RANK", std::to_string(n).c_str(), 1);
      setenv("WORLD_SIZE", std::to_string(kNodes).c_str(), 1);
      setenv("MASTER_ADDR", address_of(0).c_str(), 1);
      setenv("MASTER_PORT", "29500", 1);
      freopen((folder_ + "/out" + std::to_string(n)).c_str(), "w", stdout);
      execl(RIFFLE_COMMAND, RIFFLE_COMMAND, "probe", "--timeout", "20", nullptr);
      _exit(127);
    }
    ranks.push_back(pid);
  }
  for (const pid_t pid : ranks) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  EXPECT_TRUE(content("/out0").starts_with("slow: ")) << content("/out0");
  EXPECT_NE(content("/out0").find("of node node3"), std::string::npos);
  for (int n = 1; n < kNodes; ++n) EXPECT_EQ(content("/out" + std::to_string(n)), "");
  expect_nothing_left();
}

// Nothing in the environment says where rank 0 is: Open MPI's PMIx server carries it. Two processes
// stand on node 4; one of them is enough.
TEST_F(ProbeTest, MeetsThroughPmix) {
  if (!run_command({"mpirun", "--version"})) GTEST_SKIP() << "there is no mpirun";
  std::vector<std::string> argv = {"mpirun", "--allow-run-as-root", "-np", "6"};
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"plm", "rsh"},
                                   {"plm_rsh_agent", folder_ + "/agent"},
                                   {"plm_rsh_no_tree_spawn", "1"},
                                   {"orte_tmpdir_base", folder_},
                                   {"oob_tcp_if_include", "eth0"},
                                   {"orte_keep_fqdn_hostnames", "1"},
                                   {"hwloc_base_binding_policy", "none"},
                                   {"rmaps_base_oversubscribe", "1"}}) {
    argv.insert(argv.end(), {"--mca", key, value});
  }
  argv.insert(argv.end(), {"--host", "node0:1,node1:1,node2:1,node3:1,node4:2", RIFFLE_COMMAND,
                           "probe", "--timeout", "20"});
  const auto out = cluster_->run(0, argv, 60000);
  ASSERT_TRUE(out) << out.status().message();
  EXPECT_NE(out->find("sending of node node3"), std::string::npos) << *out;
  EXPECT_NE(out->find("5 nodes"), std::string::npos) << *out;
  EXPECT_EQ(out->find("absent"), std::string::npos) << *out;
  expect_nothing_left();
}

}  // namespace
}  // namespace riffle::cluster::probe_test
