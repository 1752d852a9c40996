// Processes that end right after they have destroyed their communicators take nothing of the last
// sum with them, though links are slow and the others still send (RIFFLE_PEER_TIMEOUT: heartbeats).
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <vector>

#include "lab/cluster/cluster.h"
#include "test/cluster/job.h"
#include "test/shared_memory.h"

namespace riffle::cluster::process_end_test {
namespace {

constexpr int kNodes = 4, kSlow = 3;     // what the others have for it waits in their kernels
constexpr std::size_t kCount = 1 << 18;  // floats

struct Shared {
  Meeting meeting;
  char error[kNodes][512];
};

void sum_and_destroy(int node, Shared& shared) {
  coll::Communicator* const c = connect(shared.meeting, node, kNodes);
  std::vector<float> data(kCount, static_cast<float>(node));
  coll::Request* const request = checked(
      coll::all_reduce(c, data.data(), data.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
  wait_until([&] { return checked(coll::test(request, nullptr)); }, "it did not end");
  check(std::ranges::count(data, 0.0f + 1 + 2 + 3) == kCount, "wrong sum");
  coll::close(c);
}

int be(int node, const Cluster& cluster, Shared& shared) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(60);
  try {
    const Status entered = cluster.enter(node);
    check(entered.is_ok(), entered.message());
    setenv("RIFFLE_SOCKET_IFNAME", "eth0", 1);
    setenv("RIFFLE_COLLNET", "on", 1);
    setenv("RIFFLE_PROBE", "off", 1);
    setenv("RIFFLE_PEER_TIMEOUT", "1", 1);
    reload_config();
    sum_and_destroy(node, shared);
  } catch (const std::exception& e) {
    std::strncpy(shared.error[node], e.what(), sizeof shared.error[node] - 1);
    return 1;
  }
  return 0;
}

TEST(ProcessEnd, RightAfterDestroyLosesNothing) {
  if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
  Profile profile = even_profile(kNodes, 20'000);
  profile.rates[kSlow].in_kbps = 5'000;
  const auto cluster = Cluster::create(profile);
  ASSERT_TRUE(cluster) << cluster.status().message();
  SharedMemory<Shared> shared;
  std::vector<pid_t> pids;
  for (int node = 0; node < kNodes; ++node) {
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) _exit(be(node, **cluster, *shared.operator->()));
    pids.push_back(pid);
  }
  for (int node = 0; node < kNodes; ++node) {
    int status = -1;
    waitpid(pids[static_cast<std::size_t>(node)], &status, 0);
    EXPECT_EQ(status, 0) << "node " << node << ": " << shared->error[node];
  }
}

}  // namespace
}  // namespace riffle::cluster::process_end_test
