#include "lab/cluster/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace riffle::cluster {
namespace {

using Clock = std::chrono::steady_clock;

struct Pipe {
  int read = -1, write = -1;
  bool open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  static void shut(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  ~Pipe() {
    shut(read);
    shut(write);
  }
};

[[noreturn]] void become(const std::vector<std::string>& argv, int in, int out, int err) {
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  std::vector<char*> args;
  for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
  args.push_back(nullptr);
  const char* path = std::getenv("PATH");
  const std::string wide = std::string(path ? path : "/usr/bin:/bin") + ":/usr/sbin:/sbin";
  setenv("PATH", wide.c_str(), 1);
  execvp(args[0], args.data());
  dprintf(2, "%s", std::strerror(errno));
  _exit(127);
}

// Feeds stdin and gathers both outputs until the program has closed them. False: deadline.
bool converse(Pipe& in, Pipe& out, Pipe& err, std::string_view input,
              std::array<std::string, 2>& output, Clock::time_point deadline) {
  while (out.read >= 0 || err.read >= 0) {
    if (input.empty()) Pipe::shut(in.write);
    std::array<pollfd, 3> polls{
        {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}}};
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    poll(polls.data(), polls.size(), static_cast<int>(left.count()));
    if (polls[2].revents != 0) {
      const ssize_t n = write(in.write, input.data(), std::min<std::size_t>(input.size(), 4096));
      if (n > 0)
        input.remove_prefix(static_cast<std::size_t>(n));
      else
        input = {};  // it does not want to hear more
    }
    for (std::size_t i = 0; i < 2; ++i) {
      if (polls[i].revents == 0) continue;
      char buffer[4096];
      int& fd = i == 0 ? out.read : err.read;
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n > 0)
        output[i].append(buffer, static_cast<std::size_t>(n));
      else
        Pipe::shut(fd);
    }
  }
  return true;
}

}  // namespace

Result<std::string> run_command(const std::vector<std::string>& argv, const std::string& input,
                                int deadline_ms) {
  std::string line;
  for (const std::string& a : argv) line += (line.empty() ? "" : " ") + a;
  Pipe in, out, err;
  if (!in.open() || !out.open() || !err.open()) return system_error(line + ": no pipe");
  signal(SIGPIPE, SIG_IGN);  // a program that fails early must not end us
  const pid_t pid = fork();
  if (pid == 0) become(argv, in.read, out.write, err.write);
  if (pid < 0) return system_error(line + ": cannot fork: " + std::strerror(errno));
  Pipe::shut(in.read);
  Pipe::shut(out.write);
  Pipe::shut(err.write);
  std::array<std::string, 2> output;
  const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
  const bool in_time = converse(in, out, err, input, output, deadline);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    return timeout_error(line + ": not done within " + std::to_string(deadline_ms) + " ms");
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output[0];
  return system_error(line + ": " + (output[1].empty() ? "failed" : output[1]));
}

}  // namespace riffle::cluster
