// Small files that live as long as their process, in a directory that processes of one user share.
//
// The owner keeps a POSIX record lock on its file. The lock ends with the process, however it dies,
// is not inherited by forked children, and is seen across PID namespaces; a file without a lock is
// therefore a leftover, which readers ignore and remove. Thread safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

// Creates `directory` (0700) if need be; refuses one that others can write.
Status prepare_live_directory(const std::string& directory);

class LiveFile {
 public:
  // In a directory as above: writes `content` into a new file (0600) whose name starts with
  // `prefix`.
  static Result<std::unique_ptr<LiveFile>> create(const std::string& directory,
                                                  const std::string& prefix,
                                                  const std::string& content);
  ~LiveFile();  // removes the file, unless this is a forked child of its owner
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

 private:
  LiveFile(std::string path, int fd);

  const std::string path_;
  const int fd_;
  const int owner_pid_;
};

// The contents of all files of other live processes whose names start with `prefix`. A directory
// that does not exist holds none.
std::vector<std::string> read_live_files(const std::string& directory, const std::string& prefix);

}  // namespace riffle
