// Strangers at a listener's door: a thread that connects to it from an address of its own,
// so many times a second, each time as a stranger of one kind does.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "plugin/transport/handshake/handshake.h"
#include "plugin/transport/reactor/socket.h"

namespace riffle {

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

class Strangers {
 public:
  Strangers(std::vector<HandleContent> doors, StrangerKind kind, int per_second)
      : doors_(std::move(doors)), kind_(kind), per_second_(per_second), open_(held(), -1) {
    for (const HandleContent& door : doors_) {
      const HelloBytes hello = make_hello({.communicator = doors_.front().communicator, .rank = 2},
                                          door.secret, make_challenge());
      recorded_.emplace_back(hello.begin(), hello.end());
    }
    thread_ = std::thread([this] { run(); });
  }
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
    const std::size_t door = knocks_ % doors_.size();
    const std::size_t number = knocks_++, half = open_.size() / 2;
    int& fd = open_[number < half ? number : half + number % half];
    if (fd >= 0) ::close(fd);
    fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const linger at_once = {.l_onoff = 1, .l_linger = 0};  // no port is kept for a minute
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    const int on = 1;
    ::setsockopt(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    const SocketAddress from = to_socket_address({.address = {127, 0, 0, 9}}, 0);
    (void)::bind(fd, reinterpret_cast<const sockaddr*>(&from.storage), from.size);
    const SocketAddress to = to_socket_address(doors_[door].endpoints.front(), 0);
    (void)::connect(fd, reinterpret_cast<const sockaddr*>(&to.storage), to.size);
    speak(fd, recorded_[door]);
    if (kind_ == StrangerKind::kGone) ::close(std::exchange(fd, -1));
  }
  void speak(int fd, const std::vector<std::uint8_t>& hello) {
    const std::string garbage = "GET / HTTP/1.1\r\n\r\n";
    if (kind_ == StrangerKind::kGarbage) say(fd, garbage.data(), garbage.size());
    if (kind_ == StrangerKind::kHalfOpen) say(fd, hello.data(), 20);
    if (kind_ == StrangerKind::kReplay) say(fd, hello.data(), hello.size());
  }
  static void say(int fd, const void* data, std::size_t size) {
    (void)!::send(fd, data, size, MSG_NOSIGNAL);
  }

  const std::vector<HandleContent> doors_;
  const StrangerKind kind_;
  const int per_second_;
  std::vector<std::vector<std::uint8_t>> recorded_;
  std::vector<int> open_;
  std::atomic<std::uint64_t> knocks_{0};
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

}  // namespace riffle
