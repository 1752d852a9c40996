#include "plugin/config/log_file.h"

#include <pthread.h>
#include <spdlog/sinks/rotating_file_sink.h>

#include <cstddef>
#include <exception>

namespace riffle {

namespace {
constexpr std::size_t kOlderFiles = 1;
constexpr char kLine[] = "%Y-%m-%dT%H:%M:%S.%e%z %l %t %g:%# %v";
}  // namespace

// Our own lock, which fork knows of, in place of the sink's.
struct LogFile::Sink {
  Sink(const std::string& path, std::uint64_t bytes)
      : file(path, static_cast<std::size_t>(bytes), kOlderFiles) {
    file.set_pattern(kLine);
  }
  spdlog::sinks::rotating_file_sink_st file;
};

LogFile::LogFile() {
  pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                 [] {
                   // Left open: it is closed by exec, and its buffer is empty.
                   [[maybe_unused]] const Sink* leaked = instance().sink_.release();
                   instance().mutex_.unlock();
                 });
}

LogFile& LogFile::instance() {
  static LogFile* const made = new LogFile;
  return *made;
}

Status LogFile::open(const std::string& path, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  sink_.reset();
  if (path.empty()) return Status::ok();
  try {
    sink_ = std::make_unique<Sink>(path, bytes);
  } catch (const std::exception& error) {
    return system_error(error.what());
  }
  return Status::ok();
}

Status LogFile::write(const spdlog::details::log_msg& message) {
  const std::lock_guard lock(mutex_);
  if (!sink_) return Status::ok();
  try {
    sink_->file.log(message);
    sink_->file.flush();
  } catch (const std::exception& error) {
    sink_.reset();
    return system_error(error.what());
  }
  return Status::ok();
}

}  // namespace riffle
