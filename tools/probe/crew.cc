#include "tools/probe/crew.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tools/probe/deadline.h"
#include "tools/terminal/patience.h"

namespace riffle::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxLineBytes = 64 << 20;  // a matrix of 1,024 hosts
constexpr int kEndMs = 1000;
constexpr int kWriteMs = 10000;

std::vector<std::string> words_for(const std::string& host,
                                   const std::vector<std::string>& launcher,
                                   const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (std::string word : launcher) {
    for (std::size_t at = 0; (at = word.find("%h", at)) != std::string::npos; at += host.size()) {
      word.replace(at, 2, host);
    }
    words.push_back(std::move(word));
  }
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

[[noreturn]] void become(const std::vector<std::string>& words, int in, int out, int err,
                         pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  signal(SIGPIPE, SIG_DFL);  // the coordinator ignores it
  if (getppid() != parent) _exit(1);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  std::vector<char*> args;
  for (const std::string& word : words) args.push_back(const_cast<char*>(word.c_str()));
  args.push_back(nullptr);
  execvp(args[0], args.data());
  dprintf(2, "%s: %s\n", args[0], std::strerror(errno));
  _exit(127);
}

std::string how_it_ended(pid_t pid) {
  int status = 0;
  for (int tries = 0; tries < 100; ++tries) {
    if (waitpid(pid, &status, WNOHANG) == pid) {
      return WIFEXITED(status) ? "exit code " + std::to_string(WEXITSTATUS(status))
                               : "killed by signal " + std::to_string(WTERMSIG(status));
    }
    usleep(2000);
  }
  return "";
}

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

}  // namespace

Crew::~Crew() {
  for (Member& m : members_) close_fd(m.to);
  const auto deadline = Clock::now() + std::chrono::milliseconds(kEndMs);
  for (Member& m : members_) {
    close_fd(m.from);
    close_fd(m.errors);
    if (m.pid <= 0) continue;
    while (waitpid(m.pid, nullptr, WNOHANG) == 0) {
      if (left_ms(deadline) == 0) {
        kill(m.pid, SIGKILL);
        waitpid(m.pid, nullptr, 0);
        break;
      }
      usleep(2000);
    }
  }
}

void Crew::launch(const std::string& host, const std::vector<std::string>& launcher,
                  const std::vector<std::string>& command) {
  Member m;
  m.name = host;
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    m.absent = std::string("no pipe: ") + std::strerror(errno);
    for (const int* ends : {in, out, err}) {
      if (ends[0] >= 0) close(ends[0]);
      if (ends[1] >= 0) close(ends[1]);
    }
    members_.push_back(std::move(m));
    return;
  }
  const std::vector<std::string> words = words_for(host, launcher, command);
  const pid_t parent = getpid();
  m.pid = fork();
  if (m.pid == 0) become(words, in[0], out[1], err[1], parent);
  close(in[0]);
  close(out[1]);
  close(err[1]);
  m.to = in[1];
  m.from = out[0];
  m.errors = err[0];
  if (m.pid < 0) m.absent = std::string("cannot fork: ") + std::strerror(errno);
  members_.push_back(std::move(m));
}

void Crew::adopt(const std::string& name, int socket) {
  Member m;
  m.name = name;
  m.from = socket;
  m.to = dup(socket);
  members_.push_back(std::move(m));
}

void Crew::tell(Member& member, const std::string& line) {
  if (!member.absent.empty()) return;
  const std::string text = kLinePrefix + line + "\n";
  fcntl(member.to, F_SETFL, fcntl(member.to, F_GETFL) | O_NONBLOCK);
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = write(member.to, text.data() + done, text.size() - done);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n < 0 && errno == EAGAIN) {
      pollfd ready = {member.to, POLLOUT, 0};
      if (poll(&ready, 1, kWriteMs) == 0) return lost(member, "does not read its input");
    } else if (errno != EINTR) {
      return lost(member, "its input is closed");
    }
  }
}

void Crew::dismiss(Member& member, const std::string& why) {
  if (!member.absent.empty()) return;
  member.absent = why;
  close_fd(member.to);
  close_fd(member.from);
  close_fd(member.errors);
}

void Crew::lost(Member& member, const std::string& why) {
  if (!member.absent.empty()) return;
  if (member.errors >= 0) take(member, member.errors);
  std::string end = member.pid > 0 ? how_it_ended(member.pid) : "";
  if (!end.empty()) member.pid = 0;
  member.absent = why;
  if (!end.empty()) member.absent += ", " + end;
  if (!member.last_words.empty()) member.absent += ": " + member.last_words;
  close_fd(member.to);
  close_fd(member.from);
}

// What is there to read; the last line that is not ours is kept for messages.
void Crew::take(Member& member, int fd) {
  char buffer[65536];
  if (fd == member.errors) {
    pollfd ready = {fd, POLLIN, 0};
    std::string text;
    while (poll(&ready, 1, 0) > 0) {
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n <= 0) {
        close_fd(member.errors);
        break;
      }
      text.append(buffer, static_cast<std::size_t>(n));
    }
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (!text.empty()) member.last_words = text.substr(text.rfind('\n') + 1);
    return;
  }
  const ssize_t n = read(fd, buffer, sizeof buffer);
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) return lost(member, "ended");
  member.received.append(buffer, static_cast<std::size_t>(n));
  for (std::size_t end; (end = member.received.find('\n')) != std::string::npos;) {
    const std::string line = member.received.substr(0, end);
    member.received.erase(0, end + 1);
    if (line.rfind(kLinePrefix, 0) == 0) {
      member.lines.push_back(line.substr(std::strlen(kLinePrefix)));
    } else if (!line.empty()) {
      member.last_words = line;
    }
  }
  if (member.received.size() > kMaxLineBytes) lost(member, "sent a line without end");
}

void Crew::hear_all(int deadline_ms, const std::string& doing) {
  const Patience patience(doing);
  const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
  while (true) {
    std::vector<pollfd> fds;
    std::vector<std::size_t> owner;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      const Member& m = members_[i];
      if (!m.absent.empty() || !m.lines.empty()) continue;
      for (const int fd : {m.from, m.errors}) {
        if (fd < 0) continue;
        fds.push_back({fd, POLLIN, 0});
        owner.push_back(i);
      }
    }
    if (fds.empty()) return;
    const int ready = poll(fds.data(), fds.size(), left_ms(deadline));
    if (ready < 0 && errno == EINTR) continue;
    for (std::size_t k = 0; k < fds.size(); ++k) {
      Member& m = members_[owner[k]];
      const bool is_open = fds[k].fd == m.from || fds[k].fd == m.errors;
      if (fds[k].revents != 0 && is_open) take(m, fds[k].fd);
    }
    if (ready <= 0) break;
  }
  for (Member& m : members_) {
    if (m.absent.empty() && m.lines.empty()) {
      lost(m, "no answer within " + std::to_string(deadline_ms / 1000) + " s");
    }
  }
}

}  // namespace riffle::tools
