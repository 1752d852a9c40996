// RecordFollower: the record of a running job, look by look. Every look reads what processes have
// written since the last one.
//
// A file is known by its inode, so that one that has become FILE.1 meanwhile is read on where it
// stood. The last line of a file may be half written: it is read when its line feed is there. Files
// may come and go, and the folder may be empty.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/explain/record_lines.h"

namespace riffle::tools {

// The clock that lines of records carry.
double unix_now_s();

struct FollowOptions {
  double window_s = 10;  // samples of so long are kept
  // Files and communicators without a line for so long count as over and are left out; 0: none.
  double forget_s = 0;
};

class RecordFollower {
 public:
  // Files and folders, as for read_records().
  RecordFollower(std::vector<std::string> paths, FollowOptions options);

  // An error where a path is neither a file nor a folder, or cannot be read; of the others' files
  // all is taken.
  Status look();
  JobRecord job() const { return lines_.job(); }
  bool has_lines() const { return !lines_.is_empty(); }
  std::size_t files() const { return known_.size(); }
  std::uint64_t bad_lines() const { return bad_lines_; }  // so far

  // What was written before the last so many bytes of a file is too old for its samples to count.
  static constexpr std::uint64_t kRecentBytes = 1 << 20;

 private:
  using Inode = std::pair<dev_t, ino_t>;

  Status read(const std::string& path, double now_s, std::map<Inode, std::uint64_t>* found);
  std::uint64_t read_on(int file, const std::string& path, std::uint64_t from, std::uint64_t end);
  void add(const std::string& path, const std::string& line, bool is_recent);

  const std::vector<std::string> paths_;
  const FollowOptions options_;
  std::map<Inode, std::uint64_t> known_;  // files, and how far each has been read
  RecordLines lines_;
  std::uint64_t bad_lines_ = 0;
};

}  // namespace riffle::tools
