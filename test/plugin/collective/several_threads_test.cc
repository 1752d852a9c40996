// Communicators on several progress threads (RIFFLE_THREADS): how many there are changes no bit,
// and what breaks on one of them ends all.
#include <dirent.h>
#include <sys/socket.h>

#include <cstring>
#include <random>
#include <utility>

#include "plugin/collective/coll_service.h"
#include "plugin/collective/request.h"
#include "test/own_job.h"
#include "test/plugin/transport/several_threads.h"
#include "test/plugin/transport/transport_harness.h"
#include "test/sanitized.h"

namespace riffle::several_threads_test {
namespace {

using Vectors = std::vector<std::vector<float>>;  // [node]

// Nodes of one communicator, on the threads in turn.
std::vector<coll::Communicator*> connect(int nodes) {
  const auto count = static_cast<std::size_t>(nodes);
  std::vector<Handle> handles(count);
  std::vector<const Handle*> pointers;
  std::vector<coll::Listener*> listeners;
  for (Handle& handle : handles) {
    const auto listener = coll::listen(settings(), 0, testing::own_job(), &handle);
    EXPECT_TRUE(listener) << listener.status().message();
    listeners.push_back(*listener);
    pointers.push_back(&handle);
  }
  std::vector<coll::Communicator*> all(count, nullptr);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < count; ++r) {
    threads.emplace_back([&, r] {
      const auto c = coll::connect(pointers, static_cast<int>(r), listeners[r],
                                   options_from(config()).collective);
      EXPECT_TRUE(c) << c.status().message();
      if (c) all[r] = *c;
      coll::close(listeners[r]);
    });
  }
  for (std::thread& t : threads) t.join();
  return all;
}

Vectors inputs(int nodes, std::size_t count) {
  Vectors all;
  for (int r = 0; r < nodes; ++r) {
    std::mt19937 random(static_cast<unsigned>(r));
    std::vector<float> one(count);
    for (float& x : one) x = static_cast<float>(random()) / 4e9F - 0.4F;
    all.push_back(std::move(one));
  }
  return all;
}

// Two calls in flight on each of two communicators, [call].
std::vector<Vectors> sums(int nodes, std::size_t count) {
  std::vector<Vectors> results(4, inputs(nodes, count));
  std::vector<std::vector<coll::Communicator*>> communicators = {connect(nodes), connect(nodes)};
  std::vector<coll::Request*> requests;
  for (std::size_t call = 0; call < results.size(); ++call) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(nodes); ++r) {
      float* const at = results[call][r].data();
      const auto q = coll::all_reduce(communicators[call % 2][r], at, at, count, DataType::kFloat32,
                                      ReduceOp::kSum);
      EXPECT_TRUE(q && *q != nullptr);
      requests.push_back(*q);
    }
  }
  for (coll::Request* const request : requests) {
    EXPECT_TRUE(eventually(
        [&] {
          const Result<bool> done = coll::test(request, nullptr);
          EXPECT_TRUE(done) << done.status().message();
          return !done || *done;
        },
        20'000));
  }
  EXPECT_EQ(reactor_threads(), static_cast<std::size_t>(settings().threads.count));
  for (auto& communicator : communicators) {
    for (coll::Communicator* const c : communicator) coll::close(c);
  }
  return results;
}

class CommunicatorsOnThreads : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("RIFFLE_COLLNET", "on", 1);
    ::setenv("RIFFLE_DETERMINISTIC", "1", 1);
  }
  void TearDown() override {
    ::unsetenv("RIFFLE_DETERMINISTIC");
    ::unsetenv("RIFFLE_PLAN");
    ::unsetenv("RIFFLE_POLLED_BYTES");
    reload_config();
  }
};

TEST_F(CommunicatorsOnThreads, SumToTheSameBitsAsOnOne) {
  constexpr std::pair<const char*, int> kCases[] = {
      {"direct", 3}, {"ring", 5}, {"tree", 6}, {"halving-doubling", 8}};
  for (const auto& [plan, nodes] : kCases) {
    ::setenv("RIFFLE_PLAN", plan, 1);
    for (const std::size_t count : {1009, 262'147, 1'000'003}) {
      if (kIsSanitized && count > 300'000) continue;
      SCOPED_TRACE(std::string(plan) + " " + std::to_string(nodes) + " nodes, " +
                   std::to_string(count) + " elements");
      std::vector<Vectors> on_one;
      for (const int threads : {1, 2, 3}) {
        ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
        const SeveralThreads set(threads);
        const std::vector<Vectors> got = sums(nodes, count);
        ASSERT_FALSE(HasFailure());
        if (threads == 1) on_one = got;
        for (std::size_t call = 0; call < got.size(); ++call) {
          for (std::size_t r = 0; r < static_cast<std::size_t>(nodes); ++r) {
            ASSERT_EQ(
                std::memcmp(got[call][r].data(), on_one[call][0].data(), count * sizeof(float)), 0)
                << threads << " threads, call " << call << ", node " << r;
          }
        }
      }
    }
  }
}

// NCCL's thread or the library's own: calls of 1 MiB may be the work of either.
TEST_F(CommunicatorsOnThreads, SumToTheSameBitsWhoeverDoesTheWork) {
  constexpr std::size_t kCount = 262'147;
  std::vector<Vectors> first;
  for (const int threads : {1, 3}) {
    for (const char* const polled : {"0", "1G"}) {
      ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
      ::setenv("RIFFLE_POLLED_BYTES", polled, 1);
      const SeveralThreads set(threads);
      const std::vector<Vectors> got = sums(4, kCount);
      ASSERT_FALSE(HasFailure());
      if (first.empty()) first = got;
      for (std::size_t call = 0; call < got.size(); ++call) {
        for (const std::vector<float>& sum : got[call]) {
          ASSERT_EQ(std::memcmp(sum.data(), first[call][0].data(), kCount * sizeof(float)), 0)
              << threads << " threads, up to " << polled << ", call " << call;
        }
      }
    }
  }
}

// Connected sockets of this process.
std::vector<int> connections() {
  std::vector<int> all;
  DIR* const folder = ::opendir("/proc/self/fd");
  while (const dirent* const entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6) all.push_back(fd);
  }
  ::closedir(folder);
  return all;
}

TEST_F(CommunicatorsOnThreads, HearOfABrokenConnectionOfAnyThread) {
  constexpr int kNodes = 2;
  constexpr std::size_t kCount = 3 << 18;  // three chunks: both threads have some
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }, 7000));
  const SeveralThreads set(2);
  std::size_t sockets = 1;
  for (std::size_t broken = 0; broken < sockets; ++broken) {
    SCOPED_TRACE("socket " + std::to_string(broken));
    ASSERT_TRUE(eventually([] { return connections().empty(); }, 7000));
    Vectors data = inputs(kNodes, kCount);
    const std::vector<coll::Communicator*> nodes = connect(kNodes);
    ASSERT_FALSE(HasFailure());
    const std::vector<int> all = connections();
    sockets = all.size();
    ASSERT_EQ(sockets, 8U) << "two streams of each thread, both ends";
    ::shutdown(all[broken], SHUT_RDWR);
    for (std::size_t r = 0; r < kNodes; ++r) {
      float* const at = data[r].data();
      // (It may have heard already.)
      const auto request =
          coll::all_reduce(nodes[r], at, at, kCount, DataType::kFloat32, ReduceOp::kSum);
      std::string error = request ? "" : request.status().message();
      EXPECT_TRUE(eventually(
          [&] {
            if (!error.empty()) return true;
            const Result<bool> done = coll::test(*request, nullptr);
            if (!done) error = done.status().message();
            return !done || *done;
          },
          10'000));
      EXPECT_NE(error.find("lost node"), std::string::npos) << "node " << r << ": " << error;
    }
    for (coll::Communicator* const c : nodes) coll::close(c);
  }
}

}  // namespace
}  // namespace riffle::several_threads_test
