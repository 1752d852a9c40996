#include "lab/nccl_host/launcher.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <exception>

#include "lab/nccl_host/bootstrap_wire.h"
#include "lab/nccl_host/hub.h"

namespace riffle::host {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void run_rank(int rank, int fd, const LaunchOptions& options,
                           const std::function<Status(Bootstrap&)>& body) {
  Status status;
  try {
    Bootstrap bootstrap(fd, rank, options.ranks, options.bootstrap_deadline_ms);
    if (options.before) status = options.before(rank);
    if (status) status = body(bootstrap);
  } catch (const std::exception& e) {
    status = internal_error(e.what());
  }
  if (!status) std::fprintf(stderr, "rank %d: %s\n", rank, status.message().c_str());
  std::fflush(nullptr);
  _exit(status ? 0 : 1);
}

}  // namespace

Result<std::vector<RankExit>> launch(const LaunchOptions& options,
                                     const std::function<Status(Bootstrap&)>& body) {
  if (options.ranks < 1 || options.ranks > kRanksMax) {
    return invalid_argument("ranks = " + std::to_string(options.ranks) + ": 1 to " +
                            std::to_string(kRanksMax) + " are possible");
  }
  std::fflush(nullptr);
  const pid_t launcher = getpid();
  std::vector<int> hub_fds;
  std::vector<pid_t> pids;
  for (int rank = 0; rank < options.ranks; ++rank) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      return system_error("socketpair failed for rank " + std::to_string(rank));
    }
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != launcher) _exit(1);
      for (int fd : hub_fds) close(fd);
      close(pair[0]);
      run_rank(rank, pair[1], options, body);
    }
    close(pair[1]);
    hub_fds.push_back(pair[0]);
    if (pid < 0) {
      for (pid_t p : pids) kill(p, SIGKILL);
      return system_error("fork failed for rank " + std::to_string(rank));
    }
    pids.push_back(pid);
  }
  if (options.on_started) options.on_started(pids);

  const auto deadline = Clock::now() + std::chrono::milliseconds(options.deadline_ms);
  Hub hub(std::move(hub_fds), options.on_note);
  bool in_time = hub.serve(deadline);
  std::vector<RankExit> exits(pids.size());
  for (std::size_t i = 0; i < pids.size(); ++i) {
    int status = 0;
    while (waitpid(pids[i], &status, WNOHANG) == 0) {
      if (!in_time || Clock::now() > deadline) {
        in_time = false;
        kill(pids[i], SIGKILL);
      }
      usleep(500);
    }
    if (WIFEXITED(status))
      exits[i].code = WEXITSTATUS(status);
    else
      exits[i].signal = WTERMSIG(status);
  }
  hub.close_all();
  if (!in_time) {
    return timeout_error("the ranks did not finish within " + std::to_string(options.deadline_ms) +
                         " ms");
  }
  return exits;
}

Status all_succeeded(const Result<std::vector<RankExit>>& exits) {
  if (!exits) return exits.status();
  for (std::size_t rank = 0; rank < exits.value().size(); ++rank) {
    const RankExit& e = exits.value()[rank];
    if (e.code == 0) continue;
    return internal_error("rank " + std::to_string(rank) +
                          (e.signal != 0 ? " was ended by signal " + std::to_string(e.signal)
                                         : " exited with " + std::to_string(e.code)));
  }
  return Status::ok();
}

}  // namespace riffle::host
