// What the reactor asks because it has no descriptor: in every turn while there is any, with short
// pauses, until it stops.
#include <stdexcept>

#include "test/plugin/transport/transport_harness.h"

namespace riffle::pollers_test {
namespace {

struct Asked : Reactor::Poller {
  explicit Asked(Reactor& r) : reactor(r) {}
  bool on_poll() override {
    const int now = ++asked;
    if (now == stops_at) reactor.stop_polling(this);
    if (now == throws_at) throw std::runtime_error("from a test");
    return false;
  }
  void on_failure(const Status& why) override { failure = why.message(); }
  Reactor& reactor;
  std::atomic<int> asked{0};
  int stops_at = -1, throws_at = -1;
  std::string failure;
};

class PollersTest : public ::testing::Test {
 protected:
  void start(Asked& one) {
    reactor->run_and_wait([&] { reactor->start_polling(&one); });
  }
  void stop(Asked& one) {
    reactor->run_and_wait([&] { reactor->stop_polling(&one); });
  }
  const std::shared_ptr<Reactor> reactor = Reactor::acquire(settings());
};

TEST_F(PollersTest, AreAskedOftenUntilTheyStop) {
  Asked one(*reactor);
  start(one);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  stop(one);
  const int asked = one.asked;
  EXPECT_GT(asked, 200) << "the thread sleeps too long";
  EXPECT_LT(asked, 20'000) << "the thread spins";
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(one.asked, asked);
}

TEST_F(PollersTest, MayStopAndBeAddedTwice) {
  Asked one(*reactor), two(*reactor);
  one.stops_at = 5;
  start(one);
  start(two);
  start(two);
  ASSERT_TRUE(eventually([&] { return two.asked > 100; }));
  EXPECT_EQ(one.asked, 5);
  stop(two);
  const int asked = two.asked;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(two.asked, asked);
}

TEST_F(PollersTest, WhatTheyThrowReachesThemAloneAndIsNoEnd) {
  Asked one(*reactor), two(*reactor);
  one.throws_at = 3;
  start(one);
  start(two);
  ASSERT_TRUE(eventually([&] { return one.asked > 10 && two.asked > 10; }));
  stop(one);
  stop(two);
  EXPECT_EQ(one.failure, "internal error: from a test");
  EXPECT_EQ(two.failure, "");
}

TEST_F(PollersTest, DoNotWaitForACallerThatComesBackLate) {
  Asked one(*reactor);
  start(one);
  int calls = 0;
  const std::uint64_t end_ns = Reactor::now_ns() + 300'000'000;
  for (; Reactor::now_ns() < end_ns; ++calls) {
    reactor->poll();
    std::this_thread::sleep_for(std::chrono::microseconds(600));
  }
  stop(one);
  EXPECT_GT(one.asked, 2 * calls);
}

TEST_F(PollersTest, TimersComeMeanwhile) {
  Asked one(*reactor);
  start(one);
  std::atomic<bool> has_rung{false};
  reactor->run_and_wait(
      [&] { reactor->call_at(Reactor::now_ns() + 5'000'000, [&] { has_rung = true; }); });
  EXPECT_TRUE(eventually([&] { return has_rung.load(); }));
  stop(one);
}

}  // namespace
}  // namespace riffle::pollers_test
