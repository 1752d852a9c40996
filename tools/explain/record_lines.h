// The record of a job as its processes wrote it (plugin/telemetry/comm_record.h), read back.
//
// Files of a running job are read as far as they go, or line by line as they grow
// (tools/live/record_follower.h); a line that is cut off or not understood is left out and noted.
// Nothing in a file is trusted.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tools/explain/job_record.h"
#include "topology/base/status.h"

namespace riffle::tools {

// Lines of records in the order in which they are found: those of one communicator may lie in
// several files, in any order.
class RecordLines {
 public:
  RecordLines();
  ~RecordLines();
  RecordLines(RecordLines&&) noexcept;
  RecordLines& operator=(RecordLines&&) noexcept;

  // Without its line feed. `file` is where it was found: what a process says of itself holds for
  // the lines of its file. False: it is not of a record, and is left out.
  bool add(const std::string& file, const std::string& line);
  // Communicators without a line since `oldest_t`, and of every node's samples those that are more
  // than `window_s` before its newest one, but for the newest of these.
  void forget(double oldest_t, double window_s);
  bool is_empty() const;  // no line was ever added
  JobRecord job() const;

 private:
  struct Kept;
  std::unique_ptr<Kept> kept_;
};

inline constexpr std::size_t kMaxRecordLineBytes = 64 << 20;

// The given files, and those of the given folders (tools/record_files.h).
Result<std::vector<std::string>> record_files(const std::vector<std::string>& paths);

// All of these files. An error if there is no line of a record anywhere.
Result<JobRecord> read_records(const std::vector<std::string>& paths);

}  // namespace riffle::tools
