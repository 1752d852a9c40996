// Runs one process per rank, as a job launcher does, and waits for them within a deadline.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "lab/nccl_host/bootstrap.h"
#include "topology/base/status.h"

namespace riffle::host {

struct LaunchOptions {
  int ranks = 2;
  int deadline_ms = 120000;           // for the whole run; then every rank is killed
  int bootstrap_deadline_ms = 60000;  // for one exchange between ranks
  // In the rank's process before anything else, for example to enter its network namespace.
  std::function<Status(int rank)> before;
  // In the launcher, when a rank calls Bootstrap::note.
  std::function<void(int rank, const std::string& text)> on_note;
  // In the launcher, once all processes exist: fault tests send them signals.
  std::function<void(const std::vector<pid_t>& pids)> on_started;
};

struct RankExit {
  int code = -1;  // exit code; -1: ended by a signal
  int signal = 0;
};

// Forks the ranks and runs `body` in each. A rank's exit code is 0 when its body returned ok; the
// message of a failed body goes to stderr and to the hub's log. Children die with the launcher.
// Fails only when processes cannot be made or the deadline passes (after killing what is left).
Result<std::vector<RankExit>> launch(const LaunchOptions& options,
                                     const std::function<Status(Bootstrap&)>& body);

// ok when every rank exited with 0; else names the first that did not.
Status all_succeeded(const Result<std::vector<RankExit>>& exits);

}  // namespace riffle::host
