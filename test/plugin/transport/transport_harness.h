// What the tests of the transport share: loopback as the only device, waiting with a deadline, and
// nodes of a mesh that write down what happens to them.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugin/entry/options.h"
#include "plugin/transport/base/transport_mesh.h"
#include "plugin/transport/factory.h"
#include "plugin/transport/reactor/reactor.h"
#include "test/numbered_frame.h"

namespace riffle {

// Before main(), as the settings are read once.
inline const bool kLoopbackOnly = [] {
  ::setenv("RIFFLE_SOCKET_IFNAME", "lo", 1);
  ::setenv("RIFFLE_CONNECT_TIMEOUT", "5", 1);
  ::setenv("RIFFLE_PEER_TIMEOUT", "2", 1);
  return true;
}();

// As the border makes them.
inline TransportOptions settings() { return options_from(config()).transport; }
inline std::shared_ptr<const Transport> transport(const TransportOptions& options = settings()) {
  return *make_transport(options);
}

template <class Condition>
bool eventually(Condition condition, int limit_ms = 5000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

inline std::size_t count_entries(const char* directory) {
  const std::filesystem::directory_iterator all(directory);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}
// Sanitizers have threads of their own.
inline std::size_t threads_called(const std::string& wanted) {
  std::size_t count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == wanted) ++count;
  }
  return count;
}
inline std::size_t reactor_threads() { return threads_called("riffle"); }
// Those of hwloc come and go while the machine is read.
inline std::size_t open_descriptors() {
  EXPECT_TRUE(eventually([] { return threads_called("riffle-machine") == 0; }));
  return count_entries("/proc/self/fd");
}

// Ends of connections over IP that this process has.
inline std::size_t connected_sockets() {
  std::size_t count = 0;
  for (const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int number = std::stoi(fd.path().filename());
    if (::getpeername(number, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.ss_family != AF_UNIX) {
      ++count;
    }
  }
  return count;
}

// A sink that keeps everything. Calls come on the reactor thread, questions from the test's.
class RecordingSink : public FrameSink {
 public:
  struct Frame {
    int peer;
    FrameHeader header;
    std::vector<std::byte> payload;
  };

  void opened(int peer) override {
    note([&] { opened_.push_back(peer); });
  }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    const std::lock_guard lock(mutex_);
    if (refuse_key_ != 0 && frame_of<NumberedFrame>(header).key == refuse_key_)
      return remote_error("refused by the test");
    auto& room = rooms_[{peer, next_room_}];
    room.resize(header.length + 1u);
    by_address_[room.data()] = next_room_++;
    return room.data();
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override {
    note([&] {
      frames_.push_back({peer, header, {payload, payload + header.length}});
      rooms_.erase({peer, by_address_.at(payload)});
    });
  }
  void sent(int, std::uint64_t cookie) override {
    note([&] { sent_.push_back(cookie); });
  }
  void departed(int peer) override {
    note([&] { departed_.push_back(peer); });
  }
  void lost(int peer, const Status& why) override {
    note([&] { lost_[peer] = why.message(); });
  }

  template <class F>
  bool wait(F condition, int limit_ms = 8000) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(limit_ms),
                             [&] { return condition(*this); });
  }
  void refuse(std::uint32_t key) {
    note([&] { refuse_key_ = key; });
  }

  std::mutex mutex_;
  std::vector<int> opened_, departed_;
  std::vector<std::uint64_t> sent_;
  std::vector<Frame> frames_;
  std::map<int, std::string> lost_;

 private:
  template <class F>
  void note(F change) {
    const std::lock_guard lock(mutex_);
    change();
    changed_.notify_all();
  }
  std::condition_variable changed_;
  std::uint32_t refuse_key_ = 0;
  std::uint64_t next_room_ = 0;
  std::map<std::pair<int, std::uint64_t>, std::vector<std::byte>> rooms_;
  std::map<std::byte*, std::uint64_t> by_address_;
};

struct MeshSettings {
  int streams = 2;
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  std::uint64_t connect_timeout_ns = 60'000'000'000;
};

// One node of a mesh.
struct Node {
  std::shared_ptr<Reactor> reactor = Reactor::acquire(settings());
  RecordingSink sink;
  std::unique_ptr<TransportMesh> mesh;

  void start(std::unique_ptr<TransportListener> listener, const std::vector<HandleContent>& handles,
             int rank, const MeshSettings& wanted) {
    TransportOptions options = settings();
    options.streams = wanted.streams;
    reactor->run_and_wait([&] {
      mesh =
          transport(options)->make_mesh(*reactor, std::move(listener), handles, rank,
                                        {wanted.peer_timeout_ns, wanted.connect_timeout_ns}, &sink);
      for (int peer = 0; peer < mesh->size(); ++peer) {
        if (peer != rank) mesh->open(peer);
      }
    });
  }
  void send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
            std::uint64_t cookie = 0, std::uint64_t priority = 0) {
    reactor->run_and_wait([&] { mesh->send(peer, header, payload, cookie, priority); });
  }
  void close() {
    reactor->run_and_wait([&] {
      if (mesh) mesh->close();
      mesh.reset();
    });
  }
  void abort() {
    reactor->run_and_wait([&] { mesh.reset(); });
  }
  ~Node() { close(); }
};

struct Listeners {
  std::vector<std::unique_ptr<TransportListener>> listeners;
  std::vector<HandleContent> handles;

  explicit Listeners(int size) {
    for (int r = 0; r < size; ++r) {
      auto listener = transport()->listen(0, 0);
      EXPECT_TRUE(listener) << listener.status().message();
      handles.push_back(*decode((*listener)->handle()));
      listeners.push_back(std::move(*listener));
    }
  }
};

inline std::vector<std::unique_ptr<Node>> start_mesh(int size, const MeshSettings& options) {
  Listeners all(size);
  std::vector<std::unique_ptr<Node>> nodes;
  for (int r = 0; r < size; ++r) {
    nodes.push_back(std::make_unique<Node>());
    nodes.back()->start(std::move(all.listeners[static_cast<std::size_t>(r)]), all.handles, r,
                        options);
  }
  for (auto& node : nodes) {
    EXPECT_TRUE(node->sink.wait(
        [&](auto& s) { return s.opened_.size() == static_cast<std::size_t>(size - 1); }));
  }
  return nodes;
}

}  // namespace riffle
