// A folder under the system's temporary one that is removed with its owner, however that ends: a
// janitor process waits for the owner's death.
#pragma once

#include <sys/types.h>

#include <string>

#include "topology/base/status.h"

namespace riffle::bench {

class TemporaryFolder {
 public:
  // The calling thread must outlive the object.
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  TemporaryFolder(std::string path, pid_t janitor) : path_(std::move(path)), janitor_(janitor) {}
  std::string path_;
  pid_t janitor_;
};

}  // namespace riffle::bench
