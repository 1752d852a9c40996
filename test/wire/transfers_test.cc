// Data through NCCL's tables of every version over a strict library of every version that is not
// newer. The library aborts where the contract is broken, so that the test fails.
#include <algorithm>
#include <random>

#include "test/wire/rig.h"

namespace riffle::wire_transfers_test {
namespace {

using wire::in_process;
using wire::Pair;
using wire::strict_library;

constexpr int kLatest = nccl_net::kVersion<abi::NetV12>;

int runs_of(int share_of_libraries) {
  const char* const wanted = std::getenv("RIFFLE_TEST_WIRE_RUNS");
  const int runs = wanted == nullptr ? 200 : std::atoi(wanted);
  return std::max(1, runs / share_of_libraries);
}

struct Expected {
  std::vector<char> sent;
  std::size_t offset;  // of the receive, in the receiver's memory
  int tag;
};

// One group of receives and the sends that fill it.
struct Group {
  std::vector<Expected> messages;
  void* request = nullptr;
  bool is_over = false;
};

// Messages of random sizes and tags in both memories, several groups in flight, until all arrived.
class Traffic {
 public:
  Traffic(Pair& pair, unsigned seed, int groups) : pair_(pair), random_(seed) {
    std::size_t at = 0;
    groups_.resize(static_cast<std::size_t>(groups));
    for (Group& group : groups_) {
      const int n = pick(1, 8);
      for (int i = 0; i < n; ++i) {
        Expected e{std::vector<char>(size()), at, 100 + i};
        for (char& c : e.sent) c = static_cast<char>(random_());
        at += e.sent.size() + kRoom;
        group.messages.push_back(std::move(e));
      }
    }
    memory_.resize(at, 0x77);
  }

  void run() {
    ASSERT_EQ(pair_.net.register_memory(pair_.recv, memory_.data(), memory_.size(), &region_), 0);
    std::size_t posted = 0, over = 0;
    for (int turns = 0; over < groups_.size() || sent_ < messages(); ++turns) {
      ASSERT_LT(turns, 10'000'000) << "no progress";
      const std::size_t most = std::min(groups_.size(), over + kMostRequests);
      if (posted < most) posted += post(groups_[posted]) ? 1 : 0;
      send_some();
      over += look_at(over, posted) ? 1 : 0;
    }
    ASSERT_EQ(pair_.net.deregister_memory(pair_.recv, region_), 0);
    compare();
  }

 private:
  static constexpr std::size_t kMostRequests = 8;  // as NCCL has where tables are v6 or older
  static constexpr std::size_t kRoom = 24;  // receives are that much larger than their messages

  struct Send {
    Expected* message;
    void *region = nullptr, *request = nullptr;
  };

  int pick(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::size_t size() {
    static constexpr std::size_t kMost[] = {0, 1, 64, 5000, 300'000};
    const std::size_t most = kMost[static_cast<std::size_t>(pick(0, 4))];
    return most == 0 ? 0 : random_() % most;
  }
  std::size_t messages() const {
    std::size_t n = 0;
    for (const Group& g : groups_) n += g.messages.size();
    return n;
  }

  // False: the library takes no more now.
  bool post(Group& group) {
    std::vector<void*> data, regions;
    std::vector<std::size_t> sizes;
    std::vector<int> tags;
    for (const Expected& e : group.messages) {
      data.push_back(memory_.data() + e.offset);
      sizes.push_back(e.sent.size() + kRoom);
      tags.push_back(e.tag);
      regions.push_back(region_);
    }
    const int n = static_cast<int>(data.size());
    group.request = n == 1 ? reinterpret_cast<void*>(abi::kOptionalRecvCompletion) : nullptr;
    EXPECT_EQ(pair_.net.irecv(pair_.recv, n, data.data(), sizes.data(), tags.data(), regions.data(),
                              &group.request),
              0);
    return group.request != nullptr;
  }

  void send_some() {
    if (next_group_ < groups_.size() && sends_.size() < kMostRequests) {
      Group& group = groups_[next_group_];
      start(group.messages[next_message_]);
    }
    if (sends_.empty() || sends_.front().request == nullptr) return;
    int done = 0, size = -1;
    ASSERT_EQ(pair_.net.test(sends_.front().request, &done, &size), 0);
    if (done == 0) return;
    EXPECT_EQ(size, static_cast<int>(sends_.front().message->sent.size()));
    EXPECT_EQ(pair_.net.deregister_memory(pair_.send, sends_.front().region), 0);
    sends_.erase(sends_.begin());
    ++sent_;
  }

  void start(Expected& e) {
    Send s{&e};
    char* const data = e.sent.empty() ? &nothing_ : e.sent.data();
    const std::size_t bytes = std::max<std::size_t>(e.sent.size(), 1);
    ASSERT_EQ(pair_.net.register_memory(pair_.send, data, bytes, &s.region), 0);
    ASSERT_EQ(pair_.net.isend(pair_.send, data, e.sent.size(), e.tag, s.region, &s.request), 0);
    if (s.request == nullptr) {
      ASSERT_EQ(pair_.net.deregister_memory(pair_.send, s.region), 0);
      return;
    }
    sends_.push_back(s);
    if (++next_message_ < groups_[next_group_].messages.size()) return;
    next_message_ = 0;
    ++next_group_;
  }

  // The oldest group alone, as NCCL asks.
  bool look_at(std::size_t index, std::size_t posted) {
    if (index >= posted) return false;
    Group& group = groups_[index];
    int done = 0, sizes[9] = {-1, -1, -1, -1, -1, -1, -1, -1, -1};
    EXPECT_EQ(pair_.net.test(group.request, &done, sizes), 0);
    if (done == 0) return false;
    const std::size_t n = group.messages.size();
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(sizes[i], static_cast<int>(group.messages[i].sent.size()));
    }
    EXPECT_EQ(sizes[n], -1) << "more sizes than messages";
    return true;
  }

  void compare() {
    for (const Group& g : groups_) {
      for (const Expected& e : g.messages) {
        const char* const got = memory_.data() + e.offset;
        EXPECT_TRUE(std::equal(e.sent.begin(), e.sent.end(), got));
        EXPECT_TRUE(std::all_of(got + e.sent.size(), got + e.sent.size() + kRoom, [](char c) {
          return c == 0x77;
        })) << "bytes behind the message were written";
      }
    }
  }

  Pair& pair_;
  std::mt19937 random_;
  std::vector<Group> groups_;
  std::vector<char> memory_;
  void* region_ = nullptr;
  std::vector<Send> sends_;
  std::size_t next_group_ = 0, next_message_ = 0, sent_ = 0;
  char nothing_ = 0;
};

void run_once(int table, unsigned seed, int groups) {
  Pair pair(table);
  pair.open();
  if (::testing::Test::HasFatalFailure()) return;
  Traffic(pair, seed, groups).run();
  pair.close();
}

class Transfers : public ::testing::TestWithParam<int> {
 protected:
  const int version = GetParam();  // of the library
  wire::Settings settings{{"RIFFLE_NET", strict_library(version)}};

  void expect_nothing_left() {
    const strict::Probe p = wire::probe(strict_library(version));
    EXPECT_EQ(p.contexts + p.listeners + p.sends + p.receives + p.regions, 0);
    EXPECT_EQ(p.inits, p.finalizes + (version <= 10 ? 1 : 0));
  }
  void run_every_table(int groups) {
    for (int table = std::max(version, 6); table <= kLatest; ++table) {
      SCOPED_TRACE("NCCL's table v" + std::to_string(table));
      run_once(table, static_cast<unsigned>(table), groups);
    }
    expect_nothing_left();
  }
};

TEST_P(Transfers, ArriveThroughEveryTable) {
  in_process(settings, [&] { run_every_table(12); });
}

TEST_P(Transfers, OverALibraryThatIsSlow) {
  settings["STRICT_NET_SLOW"] = "7";
  in_process(settings, [&] { run_every_table(4); });
}

TEST_P(Transfers, OverALibraryThatTakesOneRequestAtATime) {
  settings["STRICT_NET_REQUESTS"] = "1";
  in_process(settings, [&] { run_every_table(4); });
}

// Seeds go on from one library to the next; a failure names table and seed.
TEST_P(Transfers, OfSeededRuns) {
  in_process(settings, [&] {
    const int runs = runs_of(kLatest - nccl_net::kVersion<abi::NetV5> + 1);
    for (int run = 0; run < runs; ++run) {
      const unsigned seed = static_cast<unsigned>(version * runs + run);
      std::mt19937 random(seed);
      const int first = std::max(version, 6);
      const int table =
          first + static_cast<int>(random() % static_cast<unsigned>(kLatest - first + 1));
      SCOPED_TRACE("table v" + std::to_string(table) + ", seed " + std::to_string(seed));
      // Tables up to v10 start the library once, with what is set then.
      ::setenv("STRICT_NET_SLOW", std::to_string(random() % 4).c_str(), 1);
      ::setenv("STRICT_NET_REQUESTS", std::to_string(1 + random() % 32).c_str(), 1);
      run_once(table, seed, 1 + static_cast<int>(random() % 10));
      if (::testing::Test::HasFailure()) return;
    }
    expect_nothing_left();
  });
}

// What NCCL sees of a failure is the library's own code, in the call that failed; closing works.
TEST_P(Transfers, EndWithTheLibrarysError) {
  settings["STRICT_NET_FAIL_AT"] = "3";
  in_process(settings, [&] {
    for (int table = std::max(version, 6); table <= kLatest; ++table) {
      Pair pair(table);
      pair.open();
      char data[64] = {};
      void *region = nullptr, *request = nullptr;
      ASSERT_EQ(pair.net.register_memory(pair.send, data, sizeof data, &region), 0);
      int result = abi::kSuccess, done = 0, size = 0;
      for (int call = 0; call < 3 && result == abi::kSuccess; ++call) {
        result = pair.net.isend(pair.send, data, 8, 1, region, &request);
      }
      EXPECT_EQ(result, abi::kSystemError) << "table v" << table;
      if (request != nullptr) {
        EXPECT_EQ(pair.net.test(request, &done, &size), abi::kSystemError);
      }
      EXPECT_EQ(pair.net.deregister_memory(pair.send, region), 0);
      pair.close();
    }
  });
}

// A size that the library tells wrongly reaches NCCL as it is: nothing is made up or hidden.
TEST_P(Transfers, KeepTheSizesThatTheLibraryTells) {
  settings["STRICT_NET_LIE"] = "5";
  in_process(settings, [&] {
    for (int table = std::max(version, 6); table <= kLatest; ++table) {
      Pair pair(table);
      pair.open();
      char from[8] = "seven", to[64] = {};
      void *send_region, *recv_region, *send = nullptr, *recv = nullptr, *at = to;
      ASSERT_EQ(pair.net.register_memory(pair.send, from, sizeof from, &send_region), 0);
      ASSERT_EQ(pair.net.register_memory(pair.recv, to, sizeof to, &recv_region), 0);
      std::size_t room = sizeof to;
      int tag = 1, done = 0, size = 0;
      ASSERT_EQ(pair.net.irecv(pair.recv, 1, &at, &room, &tag, &recv_region, &recv), 0);
      ASSERT_EQ(pair.net.isend(pair.send, from, sizeof from, tag, send_region, &send), 0);
      while (done == 0) ASSERT_EQ(pair.net.test(send, &done, &size), 0);
      EXPECT_EQ(size, 8);
      for (done = 0; done == 0;) ASSERT_EQ(pair.net.test(recv, &done, &size), 0);
      EXPECT_EQ(size, 8 + 5) << "table v" << table;
      EXPECT_STREQ(to, "seven");
      EXPECT_EQ(pair.net.deregister_memory(pair.send, send_region), 0);
      EXPECT_EQ(pair.net.deregister_memory(pair.recv, recv_region), 0);
      pair.close();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Library, Transfers, ::testing::Range(5, kLatest + 1),
                         [](const auto& info) { return "V" + std::to_string(info.param); });

}  // namespace
}  // namespace riffle::wire_transfers_test
