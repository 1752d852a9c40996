#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "bench/peers/peer.h"

namespace riffle::bench {
namespace {

[[noreturn]] void become_worker(const Site& site, int rank, pid_t supervisor,
                                const std::string& algorithm, const std::string& store) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(1);
  if (Status s = site.enter(rank); !s) {
    dprintf(2, "%s\n", s.message().c_str());
    _exit(1);
  }
  const std::string program = site.programs + "/riffle_bench_gloo";
  execl(program.c_str(), program.c_str(), site.control.c_str(), store.c_str(),
        std::to_string(rank).c_str(), std::to_string(site.ranks).c_str(),
        site.address(rank).c_str(), algorithm.c_str(), nullptr);
  dprintf(2, "cannot run %s\n", program.c_str());
  _exit(1);
}

// The first worker that fails ends all: the others would wait for it.
int wait_for(std::vector<pid_t> workers) {
  for (std::size_t left = workers.size(); left > 0;) {
    int status = 0;
    const pid_t pid = wait(&status);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return 1;
    --left;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    for (pid_t worker : workers) kill(worker, SIGKILL);
    return 1;
  }
  return 0;
}

}  // namespace

Peer gloo_peer(const std::string& algorithm, const std::string& programs, int ranks) {
  Peer peer;
  peer.is_external = true;
  peer.name = peer.title = "gloo-" + algorithm;
  if (!std::filesystem::exists(programs + "/riffle_bench_gloo")) {
    peer.missing = "riffle_bench_gloo was not built: apt install libgloo-dev, then build again";
  } else if (algorithm == "bcube-classic" && ranks % 2 != 0) {
    peer.missing = "Gloo's AllreduceBcube takes an even number of nodes";
  }
  peer.supervise = [algorithm](const Site& site) {
    // Gloo refuses keys that are there, as those of workers before these.
    const std::string store = site.folder + "/gloo-" + algorithm;
    std::error_code error;
    std::filesystem::remove_all(store, error);
    if (!error) std::filesystem::create_directory(store, error);
    if (error) {
      dprintf(2, "cannot make folder %s: %s\n", store.c_str(), error.message().c_str());
      return 1;
    }
    const pid_t supervisor = getpid();
    std::vector<pid_t> workers;
    for (int rank = 0; rank < site.ranks; ++rank) {
      const pid_t pid = fork();
      if (pid == 0) become_worker(site, rank, supervisor, algorithm, store);
      if (pid > 0) workers.push_back(pid);
    }
    return wait_for(workers);
  };
  return peer;
}

}  // namespace riffle::bench
