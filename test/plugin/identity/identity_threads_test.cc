// plugin/identity/identity.h as a process uses it: application threads announce, progress threads
// make calls, communicators come and go beside them. For thread sanitizer too.
#include "plugin/identity/identity.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace riffle::identity::identity_threads_test {
namespace {

constexpr std::uint64_t kCount = 12345, kChunk = 32768, kRegion = 16 * 4 * kChunk;

const void* pointer(std::uint64_t a) { return reinterpret_cast<const void*>(a); }

// One communicator with an application and a progress thread of its own.
class Pair {
 public:
  Pair(std::uint64_t id, int collectives) : id_(id), collectives_(collectives) {
    begin_coll(id_, 2);
    add_region(id_, pointer(id_ << 32), kRegion);
    context_ = book().begin_communicator({id_, 2, 2}, &mask_);
    progress_ = std::thread([this] { make_calls(); });
    application_ = std::thread([this] { announce(); });
  }
  // Calls that were sure and right.
  int join() {
    application_.join();
    progress_.join();
    book().end_communicator(context_);
    end_coll(id_, {});
    return right_;
  }

 private:
  void announce() {
    for (int i = 0; i < collectives_; ++i) {
      CollStart start;
      start.sequence = static_cast<std::uint64_t>(i);
      start.function = "AllReduce";
      start.algorithm = "COLLNET_CHAIN";
      start.datatype = "ncclFloat32";
      start.send = start.recv = pointer(id_ << 40);
      start.count = kCount;
      void* handle = book().coll_started(context_, book().api_started(context_, false), start);
      const std::scoped_lock lock(mutex_);
      posted_.push_back(handle);
      wake_.notify_one();
    }
  }
  void make_calls() {
    for (int i = 0; i < collectives_; ++i) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return !posted_.empty(); });
      void* handle = posted_.front();
      posted_.pop_front();
      lock.unlock();
      for (int op = 0; op < 2; ++op) {
        book().proxy_op_started(this_thread(), context_, {handle, 0, 2, 2, kChunk});
      }
      for (std::uint64_t step = 0; step < 2; ++step) {
        const std::uint64_t at = (id_ << 32) + step * (kRegion / 16);
        const CallShape call{id_, pointer(at), pointer(at + kRegion / 2), kChunk / 4, 7, 0};
        const CallIdentity seen = look(call);
        const CallIdentity identity = identify(call);
        right_ += identity.is_sure && seen.is_sure && identity.comm_id == id_ &&
                          identity.bucket == static_cast<std::uint64_t>(i) &&
                          identity.first_element == step * kChunk / 4
                      ? 1
                      : 0;
      }
    }
  }

  const std::uint64_t id_;
  const int collectives_;
  int mask_ = 0;
  void* context_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<void*> posted_;
  int right_ = 0;
  std::thread progress_, application_;
};

TEST(IdentityThreads, CommunicatorsSideBySide) {
  constexpr int kCollectives = 2000;
  std::deque<Pair> pairs;
  for (std::uint64_t id = 1; id <= 3; ++id) pairs.emplace_back(id, kCollectives);
  std::uint64_t others = 0;
  for (int i = 0; i < 500; ++i) {
    int mask = 0;
    void* context = book().begin_communicator({100, 2, 2}, &mask);
    begin_coll(100, 2);
    add_region(100, pointer(1), 10);
    others += mask == 8 ? 1 : 0;
    end_coll(100, {});
    book().end_communicator(context);
  }
  EXPECT_EQ(others, 500U);
  for (Pair& p : pairs) EXPECT_EQ(p.join(), 2 * kCollectives);
  EXPECT_EQ(counts().unsure, 0U);
  EXPECT_EQ(counts().sure, 3U * 2 * kCollectives);
}

// Ranks that are no heads announce for ever and never begin: only the newest are kept.
TEST(IdentityThreads, AnnouncementsThatNobodyTakesUp) {
  CommEvents events;
  events.open({1, 2, 2});
  CollStart start;
  start.function = "AllReduce";
  start.algorithm = "COLLNET_CHAIN";
  start.datatype = "ncclFloat32";
  constexpr std::uint64_t kMany = 3 * CommEvents::kMost;
  std::uint64_t number = 0;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    start.sequence = i;
    start.count = i;
    ASSERT_TRUE(events.announce(start, i, &number));
    ASSERT_EQ(number, i);
  }
  EXPECT_NE(events.begin(kMany - CommEvents::kMost - 1).problem, nullptr);
  const Announced oldest = events.begin(kMany - CommEvents::kMost);
  EXPECT_EQ(oldest.problem, nullptr);
  EXPECT_EQ(oldest.count, kMany - CommEvents::kMost);
  EXPECT_NE(events.begin(kMany).problem, nullptr);
}

TEST(IdentityThreads, MoreCommunicatorsThanAreFollowed) {
  IdentityBook one;
  int mask = 0;
  std::vector<void*> contexts;
  for (std::size_t i = 0; i < IdentityBook::kMostCommunicators; ++i) {
    contexts.push_back(one.begin_communicator({i, 2, 2}, &mask));
    ASSERT_NE(contexts.back(), nullptr);
  }
  EXPECT_EQ(one.begin_communicator({1, 2, 2}, &mask), nullptr);
  one.end_communicator(contexts[7]);
  void* again = one.begin_communicator({1, 2, 2}, &mask);
  EXPECT_NE(again, nullptr);
  EXPECT_NE(again, contexts[7]);      // another life
  one.end_communicator(contexts[7]);  // ends nothing
  EXPECT_EQ(one.begin_communicator({1, 2, 2}, &mask), nullptr);
}

}  // namespace
}  // namespace riffle::identity::identity_threads_test
