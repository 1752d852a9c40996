// LogFile: RIFFLE_LOG_FILE, a file that is renamed when it is full (spdlog's rotating sink).
//
// Any thread. Its lock is taken over every fork, so that no child inherits it held; in the child
// the file is closed to further lines. Every line is flushed, so that neither a child nor a crash
// finds half of one in a buffer. Never destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "topology/base/status.h"

namespace spdlog {
namespace details {
struct log_msg;
}
}  // namespace spdlog

namespace riffle {

class LogFile {
 public:
  static LogFile& instance();

  // Appends to `path`; NAME.log becomes NAME.1.log at `bytes`. Empty: no further lines are written.
  Status open(const std::string& path, std::uint64_t bytes);
  // Ok if there is no file. After an error (a full disk) there is none any more.
  Status write(const spdlog::details::log_msg& message);

 private:
  LogFile();
  struct Sink;

  std::mutex mutex_;
  std::unique_ptr<Sink> sink_;  // null: no file
};

}  // namespace riffle
