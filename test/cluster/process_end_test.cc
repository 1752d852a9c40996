// Processes that end right after they have closed what they communicated by take nothing of that
// with them, though links are slow and the others still send (RIFFLE_PEER_TIMEOUT: heartbeats).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
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

void sum(int node, Meeting& meeting) {
  coll::Communicator* const c = connect(meeting, node, kNodes);
  std::vector<float> data(kCount, static_cast<float>(node));
  coll::Request* const request = checked(
      coll::all_reduce(c, data.data(), data.data(), kCount, DataType::kFloat32, ReduceOp::kSum));
  wait_until([&] { return checked(coll::test(request, nullptr)); }, "it did not end");
  check(std::ranges::count(data, 0.0f + 1 + 2 + 3) == kCount, "wrong sum");
  coll::close(c);
}

// From node 0 to the slow one.
void transfer(int node, Meeting& meeting) {
  const Transfer end = node == kSlow ? receive_end(meeting, kSlow) : send_end(meeting, kSlow);
  std::vector<float> data(kCount, static_cast<float>(7 - node));
  net::Request* const request = post(end, data.data(), data.size() * sizeof data[0]);
  wait_until([&] { return checked(net::test(request, nullptr)); }, "it did not end");
  check(std::ranges::count(data, 7.0f) == kCount, "wrong data");
  end.close();
}

class ProcessEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    Profile profile = even_profile(kNodes, 20'000);
    profile.rates[kSlow].in_kbps = 5'000;
    auto made = Cluster::create(profile);
    ASSERT_TRUE(made) << made.status().message();
    cluster_ = std::move(*made);
  }
  // Of processes that end by `end`, which is given 0, once they have done `body`.
  void run(const std::vector<int>& nodes, void (*body)(int, Meeting&), void (*end)(int)) {
    std::vector<pid_t> pids;
    for (const int node : nodes) {
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) {
        const bool is_well = is_done(
            *cluster_, node, {{"RIFFLE_PEER_TIMEOUT", "1"}}, 60,
            [&] { body(node, shared_->meeting); }, shared_->error[node]);
        if (is_well) end(0);
        _exit(1);
      }
      pids.push_back(pid);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      int status = -1;
      waitpid(pids[i], &status, 0);
      EXPECT_EQ(status, 0) << "node " << nodes[i] << ": " << shared_->error[nodes[i]];
    }
  }

 private:
  std::unique_ptr<Cluster> cluster_;
  SharedMemory<Shared> shared_;
};

TEST_F(ProcessEnd, RightAfterDestroyLosesNothing) { run({0, 1, 2, 3}, sum, ::_exit); }

// NCCL closes NET's connections one by one, so that only exit() waits for all of them.
TEST_F(ProcessEnd, ByExitRightAfterNetIsClosedLosesNothing) {
  run({0, kSlow}, transfer, std::exit);
}

}  // namespace
}  // namespace riffle::cluster::process_end_test
