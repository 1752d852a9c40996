#include "test/host/launcher.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>

#include "test/host/bootstrap_wire.h"

namespace riffle::host {
namespace {

using Clock = std::chrono::steady_clock;

// The hub: collects the parts of each gather by its list of members and answers when it is
// complete.
class Hub {
 public:
  Hub(std::vector<int> fds, const LaunchOptions& options)
      : fds_(std::move(fds)), options_(options) {}

  // Serves until every rank has closed its end. False: the deadline passed.
  bool serve(Clock::time_point deadline) {
    while (std::any_of(fds_.begin(), fds_.end(), [](int fd) { return fd >= 0; })) {
      std::vector<pollfd> polls;
      for (int fd : fds_) polls.push_back({fd, POLLIN, 0});
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return false;
      poll(polls.data(), polls.size(), static_cast<int>(left.count()));
      for (std::size_t rank = 0; rank < fds_.size(); ++rank) {
        if (polls[rank].revents != 0 && !read_one(static_cast<int>(rank), deadline)) {
          lose(static_cast<int>(rank), deadline);
        }
      }
    }
    return true;
  }

  void close_all() {
    for (int& fd : fds_) {
      if (fd >= 0) close(fd);
      fd = -1;
    }
  }

 private:
  struct Gather {
    std::uint64_t bytes = 0;
    std::map<int, std::vector<std::byte>> parts;
  };

  bool read_one(int rank, Clock::time_point deadline) {
    WireHeader header{};
    if (!transfer_all<false>(fds_[rank], &header, sizeof header, deadline)) return false;
    if (header.members > kRanksMax || header.bytes > kBlobBytesMax) return false;
    std::vector<int> members(header.members);
    std::vector<std::byte> payload(header.bytes);
    if (!transfer_all<false>(fds_[rank], members.data(), members.size() * sizeof(int), deadline) ||
        !transfer_all<false>(fds_[rank], payload.data(), payload.size(), deadline)) {
      return false;
    }
    if (header.kind == WireKind::kNote) {
      if (options_.on_note) {
        options_.on_note(rank, {reinterpret_cast<const char*>(payload.data()), payload.size()});
      }
      return true;
    }
    Gather& gather = gathers_[members];
    gather.bytes = header.bytes;
    gather.parts[rank] = std::move(payload);
    answer(members, deadline);
    return true;
  }

  void answer(const std::vector<int>& members, Clock::time_point deadline) {
    auto it = gathers_.find(members);
    int gone = -1;
    for (int m : members) {
      if (fds_[static_cast<std::size_t>(m)] < 0) gone = m;
    }
    if (gone < 0 && it->second.parts.size() < members.size()) return;
    std::vector<std::byte> all;
    for (auto& [rank, part] : it->second.parts) all.insert(all.end(), part.begin(), part.end());
    for (auto& [rank, part] : it->second.parts) {
      WireHeader header{gone < 0 ? WireKind::kReply : WireKind::kPeerGone, gone,
                        gone < 0 ? all.size() : 0, 0};
      int fd = fds_[static_cast<std::size_t>(rank)];
      if (fd < 0 || !transfer_all<true>(fd, &header, sizeof header, deadline)) continue;
      transfer_all<true>(fd, all.data(), header.bytes, deadline);
    }
    gathers_.erase(it);
  }

  void lose(int rank, Clock::time_point deadline) {
    close(fds_[static_cast<std::size_t>(rank)]);
    fds_[static_cast<std::size_t>(rank)] = -1;
    std::vector<std::vector<int>> affected;
    for (const auto& [members, gather] : gathers_) {
      if (std::find(members.begin(), members.end(), rank) != members.end()) {
        affected.push_back(members);
      }
    }
    for (const auto& members : affected) answer(members, deadline);
  }

  std::vector<int> fds_;  // -1: the rank has closed its end
  const LaunchOptions& options_;
  std::map<std::vector<int>, Gather> gathers_;
};

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
  Hub hub(std::move(hub_fds), options);
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
