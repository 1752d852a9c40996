// Traces as the processes of a job wrote them (plugin/telemetry/comm_trace.h), read back. Nothing
// in a file is trusted: a line that does not fit is an error that names it. Only the last line of a
// file may be cut off, by a job that was killed or still runs.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/trace/job_trace.h"
#include "topology/base/status.h"

namespace riffle::tools::trace {

// Lines in the order in which they are found.
class TraceLines {
 public:
  // Without its line feed; `file` is where it was found. An error names what is wrong with it and,
  // where it does not belong to the others, which.
  Status add(const std::string& file, const std::string& line);
  bool is_empty() const { return comms_.empty(); }
  // The communicator of this name; of no name: the one with most spans, if all others belong to its
  // job. Once: it takes the lines' spans along.
  Result<JobTrace> take(const std::string& comm);

 private:
  struct Node {
    std::string process;  // that wrote it
    NodeTrace trace;
  };
  struct Comm {
    JobTrace job;               // without the nodes' spans
    std::map<int, Node> nodes;  // by rank, those read so far
    std::uint64_t spans = 0;
  };
  struct Line;

  Status take_trace(const Line& line);
  Status take_spans(const Line& line);
  Status take_event(const Line& line);
  Result<Node*> node_of(const Line& line);
  std::set<std::string> processes_of(const Comm& comm) const;
  Result<Comm*> choose(const std::string& comm);

  std::map<std::string, std::string> processes_;  // by file
  std::map<std::string, Comm> comms_;             // by name
};

// All of these files and folders; `comm` as for take().
Result<JobTrace> read_traces(const std::vector<std::string>& paths, const std::string& comm);

}  // namespace riffle::tools::trace
