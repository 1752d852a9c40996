// Strangers at nodes' doors: a thread that connects from one address, so many times a second, each
// time as a stranger of one kind does. For tests and benchmarks. The object is its owner's
// thread's.
#pragma once

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace riffle::cluster {

enum class StrangerKind {
  kSilent,    // says nothing
  kHalfOpen,  // begins to introduce itself
  kGarbage,   // speaks another protocol
  kReplay,    // says what a node of the job has said, in another handshake
  kGone,      // hangs up at once
};
inline std::string name_of(StrangerKind kind) {
  const char* const names[] = {"Silent", "HalfOpen", "Garbage", "Replay", "Gone"};
  return names[static_cast<int>(kind)];
}

// A listener, and what a node of its job said there.
struct Door {
  sockaddr_in at{};
  std::vector<std::uint8_t> recorded;
};

class Strangers {
 public:
  // One door at least. Raises the process's limit of open files.
  Strangers(std::vector<Door> doors, in_addr from, StrangerKind kind, int per_second)
      : doors_(std::move(doors)),
        from_(from),
        kind_(kind),
        per_second_(per_second),
        open_(held(), -1),
        thread_([this] { run(); }) {}
  ~Strangers() {
    is_over_ = true;
    thread_.join();
    for (const int fd : open_) {
      if (fd >= 0) ::close(fd);
    }
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

  std::uint64_t knocks() const { return knocks_; }

 private:
  // Connections: the first half of them stays, of the others the oldest makes room.
  static std::size_t held() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    return std::min<std::size_t>(12'000, files.rlim_cur / 2);
  }

  void run() {
    const auto start = std::chrono::steady_clock::now();
    while (!is_over_) {
      const auto passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
      while (static_cast<double>(knocks_) < passed.count() * per_second_ && !is_over_) knock();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  void knock() {
    const Door& door = doors_[knocks_ % doors_.size()];
    const std::size_t number = knocks_++, half = open_.size() / 2;
    int& fd = open_[number < half ? number : half + number % half];
    if (fd >= 0) ::close(fd);
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const linger at_once = {.l_onoff = 1, .l_linger = 0};  // no port is kept for a minute
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const int on = 1;
    ::setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr = from_;
    (void)::bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&door.at), sizeof door.at);
    speak(fd, door.recorded);
    if (kind_ == StrangerKind::kGone) ::close(std::exchange(fd, -1));
  }
  void speak(int fd, const std::vector<std::uint8_t>& hello) const {
    const std::string garbage = "GET / HTTP/1.1\r\n\r\n";
    if (kind_ == StrangerKind::kGarbage) say(fd, garbage.data(), garbage.size());
    if (kind_ == StrangerKind::kHalfOpen)
      say(fd, hello.data(), std::min<std::size_t>(hello.size(), 20));
    if (kind_ == StrangerKind::kReplay) say(fd, hello.data(), hello.size());
  }
  static void say(int fd, const void* data, std::size_t size) {
    (void)!::send(fd, data, size, MSG_NOSIGNAL);
  }

  const std::vector<Door> doors_;
  const in_addr from_;
  const StrangerKind kind_;
  const int per_second_;
  std::vector<int> open_;
  std::atomic<std::uint64_t> knocks_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace riffle::cluster
