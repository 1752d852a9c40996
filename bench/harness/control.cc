#include "bench/harness/control.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <utility>

namespace riffle::bench {
namespace {

constexpr std::size_t kMaxPacketBytes = 8192;
using Clock = std::chrono::steady_clock;

Status failed(const std::string& what) { return system_error(what + ": " + std::strerror(errno)); }

int left_ms(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

Result<sockaddr_un> address(const std::string& path) {
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  if (path.size() >= sizeof a.sun_path)
    return invalid_argument(path + ": path too long for a socket");
  std::memcpy(a.sun_path, path.c_str(), path.size() + 1);
  return a;
}

Status send_packet(int fd, const std::string& message) {
  const std::string packet = message.substr(0, kMaxPacketBytes);
  if (send(fd, packet.data(), packet.size(), MSG_NOSIGNAL) < 0) return failed("send");
  return Status::ok();
}

std::string receive_packet(int fd) {
  char packet[kMaxPacketBytes];
  ssize_t n;
  do {
    n = recv(fd, packet, sizeof packet, 0);
  } while (n < 0 && errno == EINTR);
  return n > 0 ? std::string(packet, static_cast<std::size_t>(n)) : std::string();
}

bool readable(int fd, int wait_ms) {
  pollfd p{fd, POLLIN, 0};
  return poll(&p, 1, wait_ms) > 0;
}

}  // namespace

Result<ControlHub> ControlHub::open(const std::string& path) {
  const auto a = address(path);
  if (!a) return a.status();
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket");
  ControlHub hub(fd);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&a.value()), sizeof a.value()) != 0 ||
      listen(fd, 256) != 0) {
    return failed("listen on " + path);
  }
  return hub;
}

ControlHub::ControlHub(ControlHub&& other) noexcept
    : listen_fd_(std::exchange(other.listen_fd_, -1)), lines_(std::move(other.lines_)) {
  other.lines_.clear();
}

ControlHub::~ControlHub() {
  drop();
  if (listen_fd_ >= 0) close(listen_fd_);
}

void ControlHub::drop() {
  for (const Line& line : lines_) {
    if (line.fd >= 0) close(line.fd);
  }
  lines_.clear();
}

Status ControlHub::accept_all(int workers, pid_t supervisor, int deadline_ms) {
  lines_.assign(static_cast<std::size_t>(workers), {});
  const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
  for (int missing = workers; missing > 0;) {
    if (left_ms(deadline) == 0) {
      return timeout_error(std::to_string(missing) + " of " + std::to_string(workers) +
                           " processes did not come up within " + std::to_string(deadline_ms) +
                           " ms");
    }
    if (!readable(listen_fd_, 100)) {
      // kill(pid, 0) still finds a zombie: only the caller may reap its child.
      siginfo_t info{};
      if (supervisor > 0 &&
          waitid(P_PID, static_cast<id_t>(supervisor), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
          info.si_pid == supervisor) {
        return remote_error("ended before all of its processes were up");
      }
      continue;
    }
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    std::istringstream hello(readable(fd, left_ms(deadline)) ? receive_packet(fd) : "");
    std::string word;
    int rank = -1;
    hello >> word >> rank;
    if (word != "hello" || rank < 0 || rank >= workers ||
        lines_[static_cast<std::size_t>(rank)].fd >= 0) {
      close(fd);
      return internal_error("unexpected greeting \"" + hello.str() + "\"");
    }
    ucred sender{};  // the worker may live in a process namespace, so its own word does not count
    socklen_t size = sizeof sender;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &sender, &size);
    lines_[static_cast<std::size_t>(rank)] = {fd, sender.pid};
    --missing;
  }
  return Status::ok();
}

Status ControlHub::tell_all(const std::string& message) {
  for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
    if (Status s = tell(static_cast<int>(rank), message); !s) return s;
  }
  return Status::ok();
}

Status ControlHub::tell(int rank, const std::string& message) {
  const Status s = send_packet(lines_[static_cast<std::size_t>(rank)].fd, message);
  if (s) return s;
  return remote_error("node " + std::to_string(rank) + " is gone (" + s.message() + ")");
}

Result<std::string> ControlHub::hear(int rank, int deadline_ms) {
  const int fd = lines_[static_cast<std::size_t>(rank)].fd;
  if (!readable(fd, deadline_ms)) {
    return timeout_error("node " + std::to_string(rank) + " did not answer within " +
                         std::to_string(deadline_ms) + " ms");
  }
  return receive_packet(fd);
}

Result<std::vector<std::string>> ControlHub::hear_all(int deadline_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
  std::vector<std::string> answers;
  for (std::size_t rank = 0; rank < lines_.size(); ++rank) {
    auto answer = hear(static_cast<int>(rank), left_ms(deadline));
    if (!answer) return answer.status();
    if (answer->empty()) return remote_error("node " + std::to_string(rank) + " died");
    if (answer->rfind("error ", 0) == 0) {
      return remote_error("node " + std::to_string(rank) + ": " + answer->substr(6));
    }
    answers.push_back(std::move(answer.value()));
  }
  return answers;
}

Result<ControlLine> ControlLine::connect(const std::string& path, int rank) {
  const auto a = address(path);
  if (!a) return a.status();
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket");
  ControlLine line(fd);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&a.value()), sizeof a.value()) != 0) {
    return failed("connect to " + path);
  }
  if (Status s = line.tell("hello " + std::to_string(rank)); !s) {
    return s;
  }
  return line;
}

ControlLine::ControlLine(ControlLine&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

ControlLine::~ControlLine() {
  if (fd_ >= 0) close(fd_);
}

Status ControlLine::tell(const std::string& message) { return send_packet(fd_, message); }

std::string ControlLine::hear() { return receive_packet(fd_); }

}  // namespace riffle::bench
