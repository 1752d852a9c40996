// One clock for all links: each comes at its time, whatever the others do.
#include "plugin/transport/tcp/link_clock.h"

#include "test/plugin/transport/transport_harness.h"

namespace riffle::link_clock_test {
namespace {

struct Hand : LinkClock::Hand {
  void tick() override {
    ++ticks;
    if (does) does();
  }
  void tick_failed(const Status&) override {
    ++failures;
    if (fails_again) throw std::bad_alloc();
  }
  std::function<void()> does;
  bool fails_again = false;
  std::atomic<int> ticks{0}, failures{0};
};

class Clock : public ::testing::Test {
 protected:
  Clock() {
    reactor_->run_and_wait([&] { clock_ = LinkClock::of(*reactor_); });
  }
  ~Clock() override {
    reactor_->run_and_wait([&] {
      for (Hand* hand : {&a_, &b_, &c_}) clock_->remove(*hand);
      clock_.reset();
    });
  }
  void add(Hand& hand, std::uint64_t period_ms) {
    reactor_->run_and_wait([&] { clock_->add(hand, period_ms * 1'000'000); });
  }
  std::shared_ptr<Reactor> reactor_ = Reactor::acquire(settings());
  std::shared_ptr<LinkClock> clock_;
  Hand a_, b_, c_;
};

TEST_F(Clock, EachHandComesAtItsPeriod) {
  add(a_, 400);
  add(b_, 5);
  EXPECT_TRUE(eventually([&] { return b_.ticks > 20; }));
  EXPECT_LE(a_.ticks, 2);
  EXPECT_TRUE(eventually([&] { return a_.ticks > 1; }));
}

TEST_F(Clock, OneThatThrowsStopsNoOther) {
  a_.does = [] { throw std::bad_alloc(); };
  a_.fails_again = true;
  for (Hand* hand : {&a_, &b_}) add(*hand, 5);
  EXPECT_TRUE(eventually([&] { return b_.ticks > 5 && a_.failures > 5; }));
  add(c_, 5);
  EXPECT_TRUE(eventually([&] { return c_.ticks > 5; }));
}

TEST_F(Clock, AHandMayRemoveOthersAndAddOnes) {
  a_.does = [&] {
    clock_->remove(a_);
    clock_->remove(b_);
    clock_->add(c_, 5'000'000);
  };
  // Of one period, so that both are due in the same turn.
  reactor_->run_and_wait([&] {
    for (Hand* hand : {&a_, &b_}) clock_->add(*hand, 20'000'000);
  });
  EXPECT_TRUE(eventually([&] { return c_.ticks > 5; }));
  EXPECT_EQ(a_.ticks, 1);
  EXPECT_EQ(b_.ticks, 0);
}

}  // namespace
}  // namespace riffle::link_clock_test
