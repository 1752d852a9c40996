// The progress thread: wakes, timers, descriptors, exceptions, its own life.
#include "plugin/transport/reactor/reactor.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "plugin/transport/base/owned_timers.h"
#include "plugin/transport/device/placement.h"
#include "plugin/transport/reactor/kernel_version.h"
#include "test/plugin/transport/transport_harness.h"
#include "topology/base/time.h"

namespace riffle::reactor_test {
namespace {

struct CountingWake : Reactor::WakeHandler {
  void on_wake() override {
    ++wakes;
    if (throws) throw std::runtime_error("from a test");
  }
  void on_failure(const Status& why) override { failure = why.message(); }
  std::atomic<int> wakes{0};
  bool throws = false;
  std::string failure;
};

TEST(Reactor, AWakeIsNeverLost) {
  const auto reactor = Reactor::acquire(TransportOptions());
  CountingWake handler;
  std::atomic<std::uint64_t> produced{0};
  struct Consumer : Reactor::WakeHandler {
    void on_wake() override { seen = source->load(); }
    std::atomic<std::uint64_t>* source;
    std::atomic<std::uint64_t> seen{0};
  } consumer;
  consumer.source = &produced;
  std::vector<std::thread> producers;
  for (int t = 0; t < 4; ++t) {
    producers.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        produced.fetch_add(1);
        reactor->wake(&consumer);
      }
    });
  }
  for (auto& p : producers) p.join();
  EXPECT_TRUE(eventually([&] { return consumer.seen.load() == 80'000; }));
  reactor->run_and_wait([&] { reactor->forget(&consumer); });
}

TEST(Reactor, RaisesTheLimitOnOpenFiles) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = std::min<rlim_t>(before.rlim_max, 256);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  { const auto reactor = Reactor::acquire(TransportOptions()); }
  rlimit after{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_max, before.rlim_max);
  EXPECT_EQ(after.rlim_cur, std::min<rlim_t>(before.rlim_max, 1 << 20));
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(KernelVersion, OfReleasesAsDistributionsWriteThem) {
  EXPECT_EQ(kernel_version_of("5.4.0-150-generic"), (KernelVersion{5, 4}));
  EXPECT_EQ(kernel_version_of("6.1.0"), (KernelVersion{6, 1}));
  EXPECT_EQ(kernel_version_of("5.10"), (KernelVersion{5, 10}));
  EXPECT_LT(*kernel_version_of("4.18.0-553.el8_10.x86_64"), (KernelVersion{5, 8}));
  EXPECT_GT(*kernel_version_of("5.14.0-427.el9"), (KernelVersion{5, 8}));
  for (const char* text : {"", "5", "linux", "5.x", ".8"})
    EXPECT_FALSE(kernel_version_of(text)) << text;
}

TEST(Reactor, SeveralWakesCountAsOneAndAForgottenOneAsNone) {
  const auto reactor = Reactor::acquire(TransportOptions());
  CountingWake a, b;
  reactor->run_and_wait([&] {
    for (int i = 0; i < 10; ++i) reactor->wake(&a);
    reactor->wake(&b);
    reactor->forget(&b);
  });
  EXPECT_TRUE(eventually([&] { return a.wakes.load() == 1; }));
  reactor->run_and_wait([] {});
  reactor->run_and_wait([] {});
  EXPECT_EQ(a.wakes.load(), 1);
  EXPECT_EQ(b.wakes.load(), 0);
}

TEST(Reactor, TimersRunInOrderAndOnlyIfNotCancelled) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::vector<int> order;
  std::atomic<bool> done{false};
  const std::uint64_t start = Reactor::now_ns();
  reactor->run_and_wait([&] {
    reactor->call_at(start + 30'000'000, [&] { done = true; });
    reactor->call_at(start + 20'000'000, [&] { order.push_back(2); });
    const std::uint64_t cancelled =
        reactor->call_at(start + 15'000'000, [&] { order.push_back(99); });
    reactor->call_at(start + 10'000'000, [&order, &reactor, cancelled] {
      order.push_back(1);
      reactor->cancel(cancelled);
    });
  });
  EXPECT_TRUE(eventually([&] { return done.load(); }));
  EXPECT_GE(Reactor::now_ns() - start, 30'000'000u);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(Reactor, ReadyDescriptorsReachTheirHandlerUntilRemoved) {
  const auto reactor = Reactor::acquire(TransportOptions());
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  struct Reader : Reactor::FdHandler {
    void on_ready(std::uint32_t) override {
      char c;
      if (::read(fd, &c, 1) == 1) ++count;
    }
    int fd;
    std::atomic<int> count{0};
  } reader;
  reader.fd = pipe[0];
  reactor->run_and_wait([&] { reactor->add(pipe[0], EPOLLIN, &reader); });
  (void)!::write(pipe[1], "ab", 2);
  EXPECT_TRUE(eventually([&] { return reader.count.load() == 2; }));
  reactor->run_and_wait([&] { reactor->remove(pipe[0]); });
  (void)!::write(pipe[1], "c", 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(reader.count.load(), 2);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(Reactor, AnExceptionReachesItsHandlerAndNobodyElse) {
  const auto reactor = Reactor::acquire(TransportOptions());
  CountingWake bad, good;
  bad.throws = true;
  reactor->run_and_wait([&] {
    reactor->wake(&bad);
    reactor->wake(&good);
  });
  EXPECT_TRUE(eventually([&] { return good.wakes.load() == 1; }));
  reactor->run_and_wait([&] { EXPECT_NE(bad.failure.find("from a test"), std::string::npos); });
  EXPECT_THROW(reactor->run_and_wait([] { throw std::runtime_error("also from a test"); }),
               std::runtime_error);
  reactor->run_and_wait(
      [&] { reactor->call_at(Reactor::now_ns(), [] { throw std::runtime_error("and again"); }); });
  reactor->run_and_wait([] {});  // it lives
}

TEST(OwnedTimers, WhatTheyThrowReachesTheOwnerAndTheyEndWithIt) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::string failure;
  std::atomic<bool> has_failed{false};
  int others = 0;
  std::unique_ptr<OwnedTimers> owner;
  reactor->run_and_wait([&] {
    owner = std::make_unique<OwnedTimers>(reactor.get(), [&](const Status& why) {
      failure = why.message();
      owner.reset();  // which ends the others
      has_failed = true;
    });
    owner->cancel(owner->call_at(Reactor::now_ns(), [&] { ++others; }));
    owner->call_at(Reactor::now_ns(), [] { throw std::bad_alloc(); });
    owner->call_at(Reactor::now_ns() + 1'000'000, [&] { ++others; });
  });
  EXPECT_TRUE(eventually([&] { return has_failed.load(); }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  reactor->run_and_wait([&] {
    EXPECT_EQ(failure, "out of memory");
    EXPECT_EQ(others, 0);
  });
}

TEST(Reactor, NoSignalIsHandledOnItsThread) {
  const auto reactor = Reactor::acquire(TransportOptions());
  sigset_t blocked;
  reactor->run_and_wait([&] { ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked); });
  for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGALRM, SIGCHLD}) {
    EXPECT_EQ(::sigismember(&blocked, number), 1) << number;
  }
}

struct ThreadOfWake : Reactor::WakeHandler {
  void on_wake() override {
    thread = std::this_thread::get_id();
    ++wakes;
  }
  std::atomic<std::thread::id> thread{};
  std::atomic<int> wakes{0};
};

std::thread::id thread_of(Reactor& reactor) {
  std::thread::id id;
  reactor.run_and_wait([&] { id = std::this_thread::get_id(); });
  return id;
}

TEST(Reactor, WhoPollsDoesTheWorkAndTheThreadComesBack) {
  const auto reactor = Reactor::acquire(TransportOptions());
  const std::thread::id thread = thread_of(*reactor);
  // Within a run of polls the thread stands aside. On a busy machine any poll may come too late for
  // that, but not each of a thousand.
  ThreadOfWake handler;
  int here = 0;
  for (int i = 1; i <= 1000; ++i) {
    reactor->poll();
    reactor->wake(&handler);
    reactor->poll();
    ASSERT_TRUE(eventually([&] { return handler.wakes.load() == i; }));
    here += handler.thread.load() == std::this_thread::get_id();
  }
  EXPECT_GT(here, 500);
  // Nobody polls any more: a wake, a call, a timer and a descriptor find the thread.
  for (int i = 1; i <= 20; ++i) {
    reactor->poll();
    reactor->wake(&handler);
    ASSERT_TRUE(eventually([&] { return handler.wakes.load() == 1000 + i; }));
    EXPECT_EQ(handler.thread.load(), thread);
    reactor->poll();
    EXPECT_EQ(thread_of(*reactor), thread);
  }
  std::atomic<bool> rang{false};
  reactor->run_and_wait(
      [&] { reactor->call_at(Reactor::now_ns() + 3'000'000, [&] { rang = true; }); });
  reactor->poll();
  EXPECT_TRUE(eventually([&] { return rang.load(); }));
  reactor->run_and_wait([&] { reactor->forget(&handler); });
}

TEST(Reactor, PollsBesideEachOtherAndTheThreadLoseNothingAndNeverMeet) {
  const auto reactor = Reactor::acquire(TransportOptions());
  struct Consumer : Reactor::WakeHandler {
    void on_wake() override {
      if (inside.exchange(true)) has_met = true;
      seen = source->load();
      inside = false;
    }
    std::atomic<std::uint64_t>* source;
    std::atomic<std::uint64_t> seen{0};
    std::atomic<bool> inside{false}, has_met{false};
  };
  std::atomic<std::uint64_t> produced{0};
  Consumer consumer;
  consumer.source = &produced;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, polls = t % 2 == 0] {
      for (int i = 0; i < 5'000; ++i) {
        const std::uint64_t mine = produced.fetch_add(1) + 1;
        reactor->wake(&consumer);
        if (polls) {
          while (consumer.seen.load() < mine) reactor->poll();
        } else if (i % 64 == 0) {
          reactor->run_and_wait([] {});
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return consumer.seen.load() == 20'000; }));
  EXPECT_FALSE(consumer.has_met);
  reactor->run_and_wait([&] { reactor->forget(&consumer); });
}

TEST(Reactor, LargeWorkStaysWithTheThread) {
  const auto reactor = Reactor::acquire(TransportOptions());
  const std::thread::id thread = thread_of(*reactor);
  ThreadOfWake handler;
  for (int i = 1; i <= 50; ++i) {
    for (int polls = 0; polls < 10; ++polls) reactor->poll();  // it stands aside
    const auto begin = std::chrono::steady_clock::now();
    reactor->keep_thread(1);
    reactor->wake(&handler);
    while (handler.wakes.load() < i) {
      reactor->poll();
      ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
    }
    EXPECT_EQ(handler.thread.load(), thread);
    reactor->keep_thread(-1);
  }
  reactor->run_and_wait([&] { reactor->forget(&handler); });
}

TEST(Reactor, LeavesWorkOfAnySizeToCallersWhereCpusAreFew) {
  TransportOptions options;
  options.threads.polled_bytes = 12'345;
  EXPECT_EQ(Reactor::acquire(options)->polling().bytes, 12'345U);
  const bool has_few = placement::job_mask().size() < kFewestCores;
  EXPECT_EQ(Reactor::acquire(TransportOptions())->polling().bytes,
            has_few ? std::numeric_limits<std::size_t>::max() : std::size_t{64} << 10);
  EXPECT_EQ(Reactor::acquire(TransportOptions())->polling().aside_ns,
            has_few ? 10 * kMillisecond : kMillisecond);
}

TEST(Reactor, WhoPollsMayWaitForACallOfItsOwn) {
  const auto reactor = Reactor::acquire(TransportOptions());
  struct Nested : Reactor::WakeHandler {
    void on_wake() override {
      reactor->run_and_wait([this] { ++calls; });
    }
    Reactor* reactor;
    std::atomic<int> calls{0};
  } handler;
  handler.reactor = reactor.get();
  for (int i = 1; i <= 100; ++i) {
    reactor->wake(&handler);
    while (handler.calls.load() < i) reactor->poll();
    reactor->run_and_wait([] {});  // out of turn: the thread runs it
  }
  reactor->run_and_wait([&] { reactor->forget(&handler); });
}

TEST(Reactor, AThousandLivesLeaveNothingBehind) {
  Reactor::acquire(TransportOptions()).reset();
  ASSERT_TRUE(eventually([] { return reactor_threads() == 0; }));
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    auto reactor = Reactor::acquire(TransportOptions());
    if (i % 2 == 0) {
      if (i % 8 == 0) reactor->run_and_wait([] {});
      if (i % 4 == 0) reactor->poll();
      continue;
    }
    // The last holder may be the thread itself: it ends once its turn is over.
    reactor->run_and_wait(
        [&] { reactor->call_at(0, [holder = reactor] { std::this_thread::yield(); }); });
  }
  EXPECT_TRUE(eventually([&] { return reactor_threads() == 0 && open_descriptors() == before; }));
}

TEST(Reactor, AHolderKeepsTheOneThread) {
  const auto a = Reactor::acquire(TransportOptions());
  const auto b = Reactor::acquire(TransportOptions());
  EXPECT_EQ(a, b);  // RIFFLE_THREADS is 1
  EXPECT_EQ(reactor_threads(), 1u);
}

}  // namespace
}  // namespace riffle::reactor_test
