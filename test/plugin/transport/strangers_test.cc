// Strangers at the doors of nodes that connect, and of nodes that work: all nodes come together in
// time, what they tell each other arrives, descriptors are given back, and the log stays short.
#include "lab/cluster/strangers.h"

#include <sstream>

#include "plugin/transport/handshake/handshake.h"
#include "plugin/transport/handshake/stranger_log.h"
#include "test/manual_clock.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::strangers_test {
namespace {

constexpr int kNodes = 4;
constexpr int kPerSecond = 10'000;
constexpr int kWithinMs = 5000;

using cluster::StrangerKind;
using cluster::Strangers;

cluster::Door door_of(const HandleContent& listener) {
  const HelloBytes hello = make_hello({.communicator = listener.communicator, .rank = 2},
                                      listener.secret, make_challenge());
  return {.at = {.sin_family = AF_INET,
                 .sin_port = htons(listener.endpoints.front().port),
                 .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)},
                 .sin_zero = {}},
          .recorded = {hello.begin(), hello.end()}};
}
const in_addr kStranger = {.s_addr = htonl(0x7f000009)};  // 127.0.0.9

std::size_t count_of(const std::string& part, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

// Connections between nodes that stand, by their listeners' ends.
std::size_t streams_of(const std::vector<HandleContent>& doors) {
  std::set<std::string> own;
  for (const HandleContent& door : doors) {
    char address[32];
    std::snprintf(address, sizeof address, "0100007F:%04X", door.endpoints.front().port);
    own.insert(address);
  }
  std::ifstream table("/proc/self/net/tcp");
  std::size_t count = 0;
  for (std::string line, place, local, remote, state; std::getline(table, line);) {
    std::istringstream(line) >> place >> local >> remote >> state;
    if (own.contains(local) && remote.starts_with("0100007F:") && state == "01") ++count;
  }
  return count;
}

class StrangersTest : public ::testing::TestWithParam<StrangerKind> {
 protected:
  StrangersTest() {
    reactor_->run_and_wait([] {});
    ::testing::internal::CaptureStderr();
    before_ = open_descriptors();
  }
  ~StrangersTest() override { end(); }

  void start(Listeners all, int streams = 2) {
    for (int r = 0; r < kNodes; ++r) {
      nodes_.push_back(std::make_unique<Node>());
      nodes_.back()->start(std::move(all.listeners[static_cast<std::size_t>(r)]), all.handles, r,
                           {.streams = streams});
    }
  }
  void expect_connected() {
    for (auto& node : nodes_) {
      EXPECT_TRUE(
          node->sink.wait([](auto& s) { return s.opened_.size() == kNodes - 1; }, kWithinMs));
    }
  }
  // All to all, `rounds` times one after the other.
  void expect_to_talk(std::size_t rounds) {
    for (std::size_t round = 1; round <= rounds; ++round) {
      for (int a = 0; a < kNodes; ++a) {
        for (int b = 0; b < kNodes; ++b) {
          if (a != b) nodes_[a]->send(b, numbered(round, payload_.size()), payload_);
        }
      }
      said_ += kNodes - 1;
      for (auto& node : nodes_) {
        ASSERT_TRUE(node->sink.wait([&](auto& s) { return s.frames_.size() == said_; }));
        EXPECT_TRUE(node->sink.lost_.empty());
        EXPECT_EQ(node->sink.frames_.back().payload, payload_);
      }
    }
  }
  // What is left when nodes and strangers are gone. The log tells of each kind once, and once more
  // at the end, at most.
  void end() {
    if (nodes_.empty()) return;
    nodes_.clear();
    EXPECT_TRUE(eventually([&] { return open_descriptors() <= before_; })) << open_descriptors();
    const std::string log = ::testing::internal::GetCapturedStderr();
    EXPECT_LE(count_of("WARN", log), kNodes * 2 * 5) << log;
  }

  const std::shared_ptr<Reactor> reactor_ = Reactor::acquire(settings());
  std::size_t before_ = 0;
  std::size_t said_ = 0;
  const std::vector<std::byte> payload_ = std::vector(200'000, std::byte{42});  // outlives them
  std::vector<std::unique_ptr<Node>> nodes_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, StrangersTest,
                         ::testing::Values(StrangerKind::kSilent, StrangerKind::kHalfOpen,
                                           StrangerKind::kGarbage, StrangerKind::kReplay,
                                           StrangerKind::kGone),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(StrangersTest, NodesComeTogetherAllTheSame) {
  Listeners all(kNodes);
  Strangers strangers({door_of(all.handles.front())}, kStranger, GetParam(), kPerSecond);
  ASSERT_TRUE(eventually([&] { return strangers.knocks() > kPerSecond / 2; }));
  start(std::move(all));
  expect_connected();
  expect_to_talk(5);
}

// Doors are closed, and open again for streams that are to be added.
TEST_P(StrangersTest, NodesThatWorkDoNotCareAndTakeMoreStreams) {
  Listeners all(kNodes);
  const std::vector<HandleContent> doors = all.handles;
  start(std::move(all));
  expect_connected();
  Strangers strangers({door_of(doors.front())}, kStranger, GetParam(), kPerSecond);
  ASSERT_TRUE(eventually([&] { return strangers.knocks() > kPerSecond / 2; }));
  expect_to_talk(5);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of("dropped", log), 0u) << log;
  ::testing::internal::CaptureStderr();
  for (auto& node : nodes_) {
    node->reactor->run_and_wait([&] { node->mesh->set_peer_weights(std::vector<int>(kNodes, 3)); });
  }
  constexpr std::size_t kStreams = kNodes * (kNodes - 1) / 2 * 6;
  EXPECT_TRUE(eventually([&] { return streams_of(doors) == kStreams; }, kWithinMs))
      << streams_of(doors);
  expect_to_talk(5);
}

// No number below the limit is free.
class NoFreeDescriptor {
 public:
  NoFreeDescriptor() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int lowest = ::dup(STDERR_FILENO);
    ::close(lowest);
    const rlimit none = {static_cast<rlim_t>(lowest), before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  }
  ~NoFreeDescriptor() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoFreeDescriptor(const NoFreeDescriptor&) = delete;
  NoFreeDescriptor& operator=(const NoFreeDescriptor&) = delete;

 private:
  rlimit before_{};
};

TEST(Descriptors, ThatRunOutAreWorthOneLineOfAllListeners) {
  constexpr int kJobs = 3;
  std::vector<Listeners> jobs;
  std::vector<Fd> knocking;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int job = 0; job < kJobs; ++job) {
    Listeners& all = jobs.emplace_back(2);
    knocking.push_back(Fd::make([] { return ::socket(AF_INET, SOCK_STREAM, 0); }));
    nodes.push_back(std::make_unique<Node>());
    nodes.back()->start(std::move(all.listeners[0]), all.handles, 0, {});
  }
  (void)open_descriptors();  // once nothing else opens any
  ::testing::internal::CaptureStderr();
  {
    const NoFreeDescriptor limit;
    for (std::size_t job = 0; job < kJobs; ++job) {
      const SocketAddress to = to_socket_address(jobs[job].handles[0].endpoints.front(), 0);
      EXPECT_EQ(
          ::connect(knocking[job].get(), reinterpret_cast<const sockaddr*>(&to.storage), to.size),
          0);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of("cannot accept a connection: Too many open files", log), 1u) << log;
  for (std::size_t job = 0; job < kJobs; ++job) {
    nodes.push_back(std::make_unique<Node>());
    nodes.back()->start(std::move(jobs[job].listeners[1]), jobs[job].handles, 1, {});
  }
  for (const auto& node : nodes) {
    EXPECT_TRUE(node->sink.wait([](auto& s) { return s.opened_.size() == 1; }, kWithinMs));
  }
}

TEST(StrangerLog, OneLineAMinuteOfEachKind) {
  testing::ManualClock clock;
  const auto next_minute = [&] { clock.advance(Reactor::now_ns() + StrangerLog::kPeriodNs); };
  const auto from = [](std::uint8_t host) {
    return to_socket_address({.address = {10, 0, 0, host}, .port = 99}, 0);
  };
  ::testing::internal::CaptureStderr();
  {
    StrangerLog log(&clock);
    for (std::uint8_t host = 1; host <= 100; ++host) {
      log.dropped(Stranger::kSilent, from(host), "silent");
    }
    log.dropped(Stranger::kRefused, from(7), "refused");
    next_minute();
    next_minute();
    log.dropped(Stranger::kSilent, from(8), "silent again");
    log.dropped(Stranger::kSilent, from(9), "and again");
  }
  const std::string before = "riffle WARN dropped ";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            before + "a connection from 10.0.0.1:99: silent\n" +  //
                before + "a connection from 10.0.0.7:99: refused\n" + before +
                "99 more connections, the last one from 10.0.0.100:99: silent\n" + before +
                "a connection from 10.0.0.8:99: silent again\n" + before +
                "1 more connections, the last one from 10.0.0.9:99: and again\n");
}

}  // namespace
}  // namespace riffle::strangers_test
