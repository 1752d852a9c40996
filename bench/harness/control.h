// The line between `riffle bench` (hub) and the processes it measures (one worker per node):
// packets of text over a socket in the file system, which works across network namespaces and adds
// nothing to the traffic that is measured.
//
//   worker: hello <rank>
//   hub:    op <bytes> <type> <op> <repeats> <salt> <sums>     worker: ready
//   hub:    go                                                 worker: ran
//   hub:    check                           worker: done <start_ns> <end_ns> <cpu_us> <wrong> ...
//   hub:    quit
//   worker: error <message>                                    at any time; it then ends
//
// Every wait has a deadline. One thread per object.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle::bench {

// For all nodes' answers to "op" or "go". Rivals that poll starve each other where processors are
// few: a sum of Open MPI has taken two minutes that takes ten seconds otherwise.
inline constexpr int kAnswerMs = 600'000;

class ControlHub {
 public:
  static Result<ControlHub> open(const std::string& path);
  ControlHub(ControlHub&& other) noexcept;
  ~ControlHub();

  // Until `workers` of them have said hello. `supervisor`: the process that starts them; its early
  // end is an error (0: none). Callable again for the next set after drop().
  Status accept_all(int workers, pid_t supervisor, int deadline_ms);
  void drop();  // closes all lines

  Status tell_all(const std::string& message);
  Status tell(int rank, const std::string& message);
  // One packet of every worker, by rank. An error packet or a closed line is an error.
  Result<std::vector<std::string>> hear_all(int deadline_ms);
  // The next packet of one worker; empty: its line is closed.
  Result<std::string> hear(int rank, int deadline_ms);
  pid_t pid_of(int rank) const { return lines_[static_cast<std::size_t>(rank)].pid; }

 private:
  struct Line {
    int fd = -1;
    pid_t pid = 0;
  };
  explicit ControlHub(int fd) : listen_fd_(fd) {}
  int listen_fd_;
  std::vector<Line> lines_;  // by rank
};

class ControlLine {
 public:
  static Result<ControlLine> connect(const std::string& path, int rank);
  ControlLine(ControlLine&& other) noexcept;
  ~ControlLine();

  Status tell(const std::string& message);
  // The next packet; empty: the hub is gone. Waits as long as the hub lives.
  std::string hear();

 private:
  explicit ControlLine(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace riffle::bench
