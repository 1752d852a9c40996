// Whole communicators over the strict library, N in one process: the same bits as over TCP, one
// outcome of connect on all nodes, and with a library that lies at random a right result or an
// error, never a hang.
#include <cstdlib>
#include <numeric>

#include "plugin/collective/coll_service.h"
#include "plugin/collective/request.h"
#include "test/own_job.h"
#include "test/sanitized.h"
#include "test/wire/mesh/library_harness.h"

namespace riffle::library_communicators_test {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using library_test::behave;
using Vectors = std::vector<std::vector<float>>;

class Cluster {
 public:
  // `over(node)`: the transport's name.
  template <class Over>
  Cluster(int nodes, Over&& over) : comms(nodes, nullptr), errors(nodes) {
    std::vector<Handle> handles(nodes);
    std::vector<coll::Listener*> listeners(nodes);
    for (int i = 0; i < nodes; ++i) {
      TransportOptions options = settings();
      options.name = over(i);
      const auto listener = coll::listen(options, 0, testing::own_job(), &handles[i]);
      EXPECT_TRUE(listener) << listener.status().message();
      listeners[i] = *listener;
    }
    std::vector<const Handle*> pointers;
    for (const Handle& h : handles) pointers.push_back(&h);
    std::vector<std::thread> threads;
    for (int i = 0; i < nodes; ++i) {
      threads.emplace_back([&, i] {
        auto c = coll::connect(pointers, i, listeners[i], options_from(config()).collective);
        if (c) comms[i] = *c;
        if (!c) errors[i] = c.status().message();
        coll::close(listeners[i]);
      });
    }
    for (std::thread& t : threads) t.join();
  }
  explicit Cluster(int nodes, const char* over = kOverLibrary)
      : Cluster(nodes, [over](int) { return over; }) {}
  ~Cluster() {
    for (coll::Communicator* c : comms) {
      if (c != nullptr) coll::close(c);
    }
  }
  int size() const { return static_cast<int>(comms.size()); }
  bool is_connected() const {
    return std::ranges::all_of(comms, [](auto* c) { return c != nullptr; });
  }
  void close(int i) { coll::close(std::exchange(comms[i], nullptr)); }

  std::vector<coll::Communicator*> comms;
  std::vector<std::string> errors;
};

// Empty, or the error.
std::string wait(coll::Request* request, Clock::duration limit = 20s) {
  const auto deadline = Clock::now() + limit;
  while (Clock::now() < deadline) {
    const Result<bool> done = coll::test(request, nullptr);
    if (!done) return done.status().message();
    if (*done) return "";
    std::this_thread::sleep_for(20us);
  }
  return "never ended";
}

Vectors inputs(int nodes, std::size_t count, unsigned seed) {
  Vectors all;
  for (int r = 0; r < nodes; ++r) {
    std::mt19937 random(seed + static_cast<unsigned>(r));
    std::vector<float> one(count);
    for (float& x : one) x = static_cast<float>(random()) / 4e9F - 0.4F;
    all.push_back(std::move(one));
  }
  return all;
}

// In place, all at once. The nodes' errors.
std::vector<std::string> all_reduce(Cluster& cluster, Vectors* data) {
  std::vector<coll::Request*> requests;
  std::vector<std::string> errors;
  for (int r = 0; r < cluster.size(); ++r) {
    float* const at = (*data)[r].data();
    const auto q = coll::all_reduce(cluster.comms[r], at, at, (*data)[r].size(), DataType::kFloat32,
                                    ReduceOp::kSum);
    EXPECT_TRUE(q && *q != nullptr);
    requests.push_back(*q);
  }
  for (coll::Request* q : requests) errors.push_back(wait(q));
  return errors;
}

class LibraryCommunicators : public library_test::LibraryMeshTest {
 protected:
  void SetUp() override {
    LibraryMeshTest::SetUp();
    setenv("RIFFLE_DETERMINISTIC", "1", 1);
    reload_config();
  }
  void TearDown() override {
    unsetenv("RIFFLE_DETERMINISTIC");
    unsetenv("RIFFLE_PLAN");
    reload_config();
    LibraryMeshTest::TearDown();
  }
};

// Plans are forced, as the planner may choose another one where the library tells another rate.
TEST_F(LibraryCommunicators, SumToTheSameBitsAsOverTcp) {
  constexpr std::pair<const char*, int> kCases[] = {
      {"direct", 2}, {"direct", 3}, {"ring", 5}, {"tree", 6},
      {"direct", 8}, {"ring", 8},   {"tree", 8}, {"halving-doubling", 8}};
  for (const auto& [plan, nodes] : kCases) {
    setenv("RIFFLE_PLAN", plan, 1);
    reload_config();
    for (const std::size_t count : {2, 1009, 65536, 1000003}) {
      if (kIsSanitized && count > 100'000) continue;
      SCOPED_TRACE(std::string(plan) + " " + std::to_string(nodes) + " nodes, " +
                   std::to_string(count) + " elements");
      Vectors over_library = inputs(nodes, count, 3), over_tcp = over_library;
      for (auto& [over, data] : {std::pair(kOverLibrary, &over_library), {kOverTcp, &over_tcp}}) {
        Cluster cluster(nodes, over);
        for (const std::string& e : cluster.errors) ASSERT_EQ(e, "");
        for (const std::string& e : all_reduce(cluster, data)) ASSERT_EQ(e, "");
      }
      for (int r = 0; r < nodes; ++r) {
        ASSERT_EQ(std::memcmp(over_library[r].data(), over_tcp[r].data(), count * sizeof(float)),
                  0);
      }
    }
  }
}

TEST_F(LibraryCommunicators, SumSixteenMebibytes) {
  Cluster cluster(2);
  Vectors data = inputs(2, 4 << 20, 1);
  std::vector<float> sum = data[0];
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += data[1][i];
  for (const std::string& e : all_reduce(cluster, &data)) ASSERT_EQ(e, "");
  EXPECT_EQ(data[0], sum);
  EXPECT_EQ(data[1], sum);
}

TEST_F(LibraryCommunicators, ClosingAtDifferentTimesIsNoError) {
  Cluster cluster(4);
  Vectors data = inputs(4, 100'000, 1);
  for (const std::string& e : all_reduce(cluster, &data)) ASSERT_EQ(e, "");
  for (int r = 0; r < 4; ++r) {
    cluster.close(r);
    std::this_thread::sleep_for(100ms);
  }
}

TEST_F(LibraryCommunicators, AllNodesHearOfOneNodesLibrary) {
  for (const int registrations : {1, 4, 9}) {
    behave({.refuse_mr = registrations});
    const Cluster cluster(4);
    for (const std::string& error : cluster.errors) {
      EXPECT_NE(error.find("libnccl-net-strict12.so (v12): regMr of "), std::string::npos) << error;
    }
    behave({});
  }
}

TEST_F(LibraryCommunicators, RefuseNodesThatUseTcp) {
  const Cluster cluster(3, [](int node) { return node == 1 ? kOverTcp : kOverLibrary; });
  for (const std::string& error : cluster.errors) {
    EXPECT_NE(error.find("set RIFFLE_NET and RIFFLE_COLLNET alike on all nodes"), std::string::npos)
        << error;
  }
}

// -- a library that lies

int runs() {
  const char* const wanted = std::getenv("RIFFLE_TEST_RUNS");
  return wanted == nullptr ? (kIsSanitized ? 20 : 60) : std::atoi(wanted);
}

struct Outcomes {
  int right = 0, errors = 0;
};

void run_seed(int seed, Outcomes* outcomes) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(static_cast<unsigned>(seed));
  behave({.slow = static_cast<int>(random() % 3),
          .requests = 1 + static_cast<int>(random() % 32),
          .seed = seed,
          .meets = random() % 2 == 0});
  Vectors data;  // outlives the cluster, whose links may still send when a call has failed
  Cluster cluster(2 + static_cast<int>(random() % 3));
  std::vector<std::string> errors = cluster.errors;
  for (int call = 0; call < 4 && cluster.is_connected(); ++call) {
    const std::size_t count = 1 + random() % (call == 0 ? 3 : 200'000);
    data = inputs(cluster.size(), count, static_cast<unsigned>(seed));
    for (auto& one : data) {
      for (float& x : one) x = std::floor(x * 100);  // whole numbers: sums are exact
    }
    std::vector<float> sum(count);
    for (const auto& one : data) {
      std::transform(sum.begin(), sum.end(), one.begin(), sum.begin(), std::plus<>());
    }
    errors = all_reduce(cluster, &data);
    for (int r = 0; r < cluster.size(); ++r) {
      ASSERT_NE(errors[r], "never ended");
      if (errors[r].empty()) {
        ASSERT_EQ(data[r], sum) << "wrong sum";
      }
    }
    if (std::ranges::any_of(errors, [](const auto& e) { return !e.empty(); })) break;
  }
  const bool is_right = std::ranges::all_of(errors, [](const auto& e) { return e.empty(); });
  ++(is_right ? outcomes->right : outcomes->errors);
  if (is_right) return;
  EXPECT_TRUE(std::ranges::any_of(
      errors,
      [](const auto& e) { return e.find("libnccl-net-strict12.so (v12): ") != std::string::npos; }))
      << std::accumulate(errors.begin(), errors.end(), std::string(),
                         [](const auto& a, const auto& b) { return a + "\n" + b; });
}

TEST_F(LibraryCommunicators, OfALibraryThatLiesEndInTheRightSumOrAnError) {
  Outcomes outcomes;
  for (int seed = 1; seed <= runs() && !HasFailure(); ++seed) run_seed(seed, &outcomes);
  std::printf("%d right, %d errors\n", outcomes.right, outcomes.errors);
  EXPECT_GT(outcomes.right, 0);
  EXPECT_GT(outcomes.errors, 0);
}

}  // namespace
}  // namespace riffle::library_communicators_test
