#include "plugin/collective/base/background_thread.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

namespace riffle::background_thread_test {
namespace {

bool becomes(const std::atomic<int>& value, int wanted) {
  for (int i = 0; i < 2000 && value != wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return value == wanted;
}

// Stopped before it goes, as its owner does.
class Background {
 public:
  explicit Background(const std::shared_ptr<Reactor>& reactor)
      : reactor_(reactor),
        thread(reactor, [this](const Status& why) { failure = why.message(); }) {}
  ~Background() {
    reactor_->run_and_wait([this] { thread.stop(); });
  }

 private:
  const std::shared_ptr<Reactor> reactor_;

 public:
  std::string failure;  // reactor thread
  BackgroundThread thread;
};

TEST(BackgroundThread, WorksInOrderAndAnswersOnTheReactor) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::atomic<int> answers = 0;
  std::atomic<std::thread::id> worker;  // the next work writes while the last answer reads
  Background background(reactor);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(background.thread.run([&] { worker = std::this_thread::get_id(); },
                                      [&, i] {
                                        EXPECT_EQ(answers, i);
                                        EXPECT_NE(std::this_thread::get_id(), worker.load());
                                        ++answers;
                                      }));
  }
  EXPECT_TRUE(becomes(answers, 3));
}

TEST(BackgroundThread, WorkThatThrowsIsAnsweredAndHarmsNobody) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::atomic<int> answers = 0;
  Background background(reactor);
  ASSERT_TRUE(
      background.thread.run([] { throw std::runtime_error("no memory"); }, [&] { ++answers; }));
  ASSERT_TRUE(background.thread.run([] {}, [&] { ++answers; }));
  EXPECT_TRUE(becomes(answers, 2));
}

TEST(BackgroundThread, AnAnswerThatThrowsIsItsOwnersAndTakesNoOtherWithIt) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::atomic<int> answers = 0;
  Background background(reactor);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(background.thread.run([] {},
                                      [&, i] {
                                        ++answers;
                                        if (i == 1) throw std::runtime_error("from a test");
                                      }));
  }
  EXPECT_TRUE(becomes(answers, 3));
  reactor->run_and_wait([&] { EXPECT_EQ(background.failure, "internal error: from a test"); });
}

TEST(BackgroundThread, NoAnswerComesAfterStop) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::atomic<int> answers = 0, works = 0;
  {
    Background background(reactor);
    reactor->run_and_wait([&] { background.thread.stop(); });
    ASSERT_TRUE(background.thread.run([&] { ++works; }, [&] { ++answers; }));
    EXPECT_TRUE(becomes(works, 1));
  }
  reactor->run_and_wait([] {});
  EXPECT_EQ(answers, 0);
}

// A data loader's process gets a copy of the object but not its thread.
TEST(BackgroundThread, AForkedChildCanDropIt) {
  const auto reactor = Reactor::acquire(TransportOptions());
  std::atomic<int> answers = 0;
  auto background = std::make_unique<BackgroundThread>(reactor, [](const Status&) {});
  ASSERT_TRUE(background->run([] {}, [&] { ++answers; }));
  ASSERT_TRUE(becomes(answers, 1));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the thread sleeps by now
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    background.reset();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  reactor->run_and_wait([&] { background->stop(); });
}

}  // namespace
}  // namespace riffle::background_thread_test
