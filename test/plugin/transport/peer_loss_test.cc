// Peers that die or hang, as processes: every survivor learns of it in time and by name.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

#include "plugin/config/fault_log.h"
#include "plugin/config/log.h"
#include "plugin/net/net_service.h"
#include "test/plugin/transport/transport_harness.h"

namespace riffle::peer_loss_test {
namespace {

constexpr std::uint64_t kPeerTimeoutNs = 1'000'000'000;

// A forked process that runs `body` with one end of a socket pair, and dies with the test.
class Process {
 public:
  explicit Process(const std::function<void(int pipe)>& body) {
    // A child of a process with threads could start none of its own under a sanitizer.
    EXPECT_TRUE(eventually(
        [] { return reactor_threads() == 0 && threads_called("riffle-machine") == 0; }, 7000));
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[1]);
      body(ends[0]);
      ::_exit(0);
    }
    ::close(ends[0]);
    pipe_ = ends[1];
  }
  ~Process() {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(pipe_);
  }
  void signal(int number) const { ::kill(pid_, number); }
  int pipe() const { return pipe_; }

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;
};

void write_handle(int pipe, const Handle& handle) {
  ASSERT_EQ(::write(pipe, handle.bytes.data(), handle.bytes.size()), 128);
}
Handle read_handle(int pipe) {
  Handle handle;
  EXPECT_EQ(::recv(pipe, handle.bytes.data(), handle.bytes.size(), MSG_WAITALL), 128);
  return handle;
}
void tell(int pipe) { (void)!::write(pipe, "x", 1); }
void await(int pipe) {
  char c;
  (void)!::read(pipe, &c, 1);
}

// The way of both processes into a mesh of two; the child is node 1.
std::unique_ptr<Node> join_mesh(int pipe, int rank) {
  auto own = transport()->listen(0, 0);
  EXPECT_TRUE(own);
  write_handle(pipe, (*own)->handle());
  std::vector<HandleContent> handles(2);
  handles[static_cast<std::size_t>(rank)] = *decode((*own)->handle());
  handles[static_cast<std::size_t>(1 - rank)] = *decode(read_handle(pipe));
  auto node = std::make_unique<Node>();
  node->start(std::move(*own), handles, rank, {.streams = 2, .peer_timeout_ns = kPeerTimeoutNs});
  EXPECT_TRUE(node->sink.wait([](auto& s) { return s.opened_.size() == 1; }));
  return node;
}

std::uint64_t ms_until_lost(Node& node, int peer = 1) {
  const std::uint64_t start = Reactor::now_ns();
  EXPECT_TRUE(node.sink.wait([&](auto& s) { return s.lost_.count(peer) == 1; }));
  return (Reactor::now_ns() - start) / 1'000'000;
}

TEST(PeerLoss, AKilledNodeIsLostAtOnce) {
  Process peer([](int pipe) {
    auto node = join_mesh(pipe, 1);
    await(pipe);
  });
  auto node = join_mesh(peer.pipe(), 0);
  peer.signal(SIGKILL);
  EXPECT_LT(ms_until_lost(*node), 1000u);
  EXPECT_TRUE(node->sink.lost_[1].starts_with("127.0.0.1:")) << node->sink.lost_[1];
  // Which of the two depends on whether something of ours was on its way.
  EXPECT_TRUE(node->sink.lost_[1].find("without a goodbye") != std::string::npos ||
              node->sink.lost_[1].find("connection broke") != std::string::npos)
      << node->sink.lost_[1];
}

// One link between the two processes, or with several progress threads one of each communicator;
// its loss is that of all who use it.
TEST(PeerLoss, AKilledNodeIsLostToAllItsCommunicators) {
  constexpr int kCommunicators = 4;
  // Each of the two connects every other time.
  const auto join_all = [](int pipe, int first_rank) {
    std::vector<std::unique_ptr<Node>> nodes;
    for (int i = 0; i < kCommunicators; ++i) {
      const int rank = (first_rank + i) % 2;
      nodes.push_back(join_mesh(pipe, rank));
      nodes.back()->send(1 - rank, numbered(1), {});
      EXPECT_TRUE(nodes.back()->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
    }
    return nodes;
  };
  Process peer([&](int pipe) {
    const auto nodes = join_all(pipe, 1);
    await(pipe);
  });
  const auto nodes = join_all(peer.pipe(), 0);
  const std::size_t links = settings().threads.count == 1 ? 1 : kCommunicators;
  EXPECT_EQ(connected_sockets(), 2 * links) << "streams";
  peer.signal(SIGKILL);
  for (const auto& node : nodes) EXPECT_LT(ms_until_lost(*node, 1 - node->mesh->rank()), 1000u);
}

TEST(PeerLoss, AStoppedNodeIsLostAfterThePeerTimeout) {
  Process peer([](int pipe) {
    auto node = join_mesh(pipe, 1);
    await(pipe);
  });
  auto node = join_mesh(peer.pipe(), 0);
  peer.signal(SIGSTOP);
  const std::uint64_t waited_ms = ms_until_lost(*node);
  EXPECT_GT(waited_ms, 500u);
  EXPECT_LT(waited_ms, 2000u);
  EXPECT_NE(node->sink.lost_[1].find("no sign of life for 1 s (RIFFLE_PEER_TIMEOUT)"),
            std::string::npos)
      << node->sink.lost_[1];
}

TEST(PeerLoss, AStoppedNodeIsLostAlsoWhileWeSendToIt) {
  Process peer([](int pipe) {
    auto node = join_mesh(pipe, 1);
    await(pipe);
  });
  auto node = join_mesh(peer.pipe(), 0);
  peer.signal(SIGSTOP);
  const std::vector<std::byte> payload(4 << 20);
  for (std::uint64_t i = 0; i < 16; ++i) {
    node->send(1, numbered(i, 4 << 20), payload, i);
  }
  EXPECT_LT(ms_until_lost(*node), 2000u);
}

TEST(PeerLoss, AForkedChildOfTheKilledNodeDoesNotHideItsDeath) {
  Process peer([](int pipe) {
    auto node = join_mesh(pipe, 1);
    if (::fork() == 0) {  // a data-loader worker that lives on
      ::prctl(PR_SET_PDEATHSIG, 0);
      ::sleep(4);
      ::_exit(0);
    }
    tell(pipe);
    await(pipe);
  });
  auto node = join_mesh(peer.pipe(), 0);
  await(peer.pipe());
  peer.signal(SIGKILL);
  EXPECT_LT(ms_until_lost(*node), 1000u);
}

TEST(PeerLoss, AForkedChildHoldsNoSocketsAndHangsNowhere) {
  auto nodes = start_mesh(2, {.streams = 2});
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t sockets = 0;
    for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;
      const auto target = std::filesystem::read_symlink(fd.path(), ignored).string();
      if (target.starts_with("socket:") || target.find("eventpoll") != std::string::npos) ++sockets;
    }
    ::alarm(3);
    nodes.clear();  // closes and destroys objects whose thread does not exist here
    ::_exit(sockets == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // The parent's links are as they were.
  nodes[0]->send(1, numbered(1), {});
  EXPECT_TRUE(nodes[1]->sink.wait([](auto& s) { return s.frames_.size() == 1; }));
}

// A receiver in the child; the parent sends. RIFFLE_PEER_TIMEOUT is 2 s (transport_harness.h).
void receive_for_ever(int pipe) {
  Handle handle;
  net::Listener* const listener = *net::listen(options_from(config()).transport, 0, 0, &handle);
  write_handle(pipe, handle);
  net::RecvConnection* connection = nullptr;
  while ((connection = *net::accept(listener)) == nullptr) ::usleep(1000);
  std::vector<char> room(1 << 20);
  void* const data = room.data();
  const std::size_t size = room.size();
  const int tag = 0;
  tell(pipe);
  while (true) {
    auto request = net::irecv(connection, {&data, 1}, {&size, 1}, {&tag, 1});
    if (!request) return;
    while (*request != nullptr) {
      const auto done = net::test(*request, nullptr);
      if (!done || *done) break;
      ::usleep(100);
    }
  }
}

class NetPeerLoss : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Signals, NetPeerLoss, ::testing::Values(SIGKILL, SIGSTOP));

TEST_P(NetPeerLoss, TheSenderGetsOneErrorThatNamesThePeer) {
  Process peer(receive_for_ever);
  Handle handle = read_handle(peer.pipe());
  net::SendConnection* connection = nullptr;
  ASSERT_TRUE(eventually([&] {
    return (connection = *net::connect(options_from(config()).transport, options_from(config()).net,
                                       0, &handle)) != nullptr;
  }));
  await(peer.pipe());
  const std::vector<char> data(1 << 20, 'd');
  std::string error;
  const std::uint64_t start = Reactor::now_ns();
  bool is_signalled = false;
  EXPECT_TRUE(eventually(
      [&] {
        auto request = net::isend(connection, data.data(), data.size(), 0);
        if (!request) error = request.status().message();
        while (error.empty() && *request != nullptr) {
          const auto done = net::test(*request, nullptr);
          if (!done) error = done.status().message();
          if (!done || *done) break;
          std::this_thread::yield();
        }
        if (!is_signalled && Reactor::now_ns() - start > 100'000'000) {
          peer.signal(GetParam());
          is_signalled = true;
        }
        return !error.empty();
      },
      4000));
  // Links look every eighth of the timeout.
  EXPECT_LT(Reactor::now_ns() - start, 3'500'000'000u);
  EXPECT_NE(error.find("lost receiver 127.0.0.1:"), std::string::npos) << error;
  net::close(connection);
}

// Warnings of this process, kept by the logger.
std::mutex warnings_mutex;
std::vector<std::string> warnings;
void keep_warning(int level, unsigned long, const char*, int, const char* format, ...) {
  if (level != 2) return;
  va_list arguments;
  va_start(arguments, format);
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const std::lock_guard lock(warnings_mutex);
  warnings.emplace_back(line);
}

TEST(PeerLoss, AllConnectionsToADeadPeerMakeOneWarning) {
  constexpr int kConnections = 5;
  Process peer([](int pipe) {
    std::array<net::Listener*, kConnections> listeners{};
    for (net::Listener*& listener : listeners) {
      Handle handle;
      listener = *net::listen(options_from(config()).transport, 0, 0, &handle);
      write_handle(pipe, handle);
    }
    for (net::Listener* const listener : listeners) {
      while (*net::accept(listener) == nullptr) ::usleep(1000);
    }
    tell(pipe);
    await(pipe);
  });
  const std::vector<char> data(100, 'd');
  std::vector<net::Request*> requests;
  std::vector<net::SendConnection*> connections;
  for (int i = 0; i < kConnections; ++i) {
    Handle handle = read_handle(peer.pipe());
    net::SendConnection* connection = nullptr;
    ASSERT_TRUE(eventually([&] {
      return (connection = *net::connect(options_from(config()).transport,
                                         options_from(config()).net, 0, &handle)) != nullptr;
    }));
    requests.push_back(*net::isend(connection, data.data(), data.size(), 0));
    connections.push_back(connection);
  }
  await(peer.pipe());
  end_incident();
  set_logger(keep_warning);
  peer.signal(SIGKILL);
  for (net::Request* const request : requests) {
    EXPECT_TRUE(eventually([&] { return !net::test(request, nullptr); }));
  }
  for (net::SendConnection* const connection : connections) net::close(connection);
  set_logger(nullptr);
  const std::lock_guard lock(warnings_mutex);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("lost receiver 127.0.0.1:"), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace riffle::peer_loss_test
