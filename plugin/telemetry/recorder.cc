#include "plugin/telemetry/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <utility>

#include "plugin/config/caught.h"
#include "plugin/config/file_pattern.h"
#include "plugin/config/log.h"
#include "plugin/telemetry/json_line.h"

namespace riffle {
namespace {

int open_file(const std::string& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

// Signals of the job belong to the job's threads.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(body));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
}

// The process's recorders. Locked across a fork, so that the child finds them in order.
struct Shared {
  struct File {
    std::weak_ptr<Recorder> recorder;
    std::atomic<bool> has_failed{false};  // said once
  };
  std::mutex mutex;
  File record, trace;
};

Shared& shared() {
  static Shared* const instance = [] {
    auto* made = new Shared;
    pthread_atfork([] { shared().mutex.lock(); }, [] { shared().mutex.unlock(); },
                   [] { shared().mutex.unlock(); });
    return made;
  }();
  return *instance;
}

}  // namespace

std::shared_ptr<Recorder> Recorder::acquire(const RecordOptions& options, Content content) {
  if (options.path.empty()) return nullptr;
  const bool traces = content == Content::kTrace;
  const std::lock_guard lock(shared().mutex);
  Shared::File& of_process = traces ? shared().trace : shared().record;
  if (auto running = of_process.recorder.lock(); running && running->process_ == getpid()) {
    return running;
  }
  if (of_process.has_failed) return nullptr;
  Result<std::string> path = file_of_process("RIFFLE_RECORD", options.path, "jsonl");
  Status status = path.status();
  if (status) {
    const std::string file = *path + (traces ? kTraceSuffix : "");
    auto made = open(file, options.max_bytes);
    status = made.status();
    if (status) {
      (*made)->has_failed_ = &of_process.has_failed;
      of_process.recorder = *made;
      log_info("{} to {}", traces ? "tracing" : "recording", file);
      return *made;
    }
  }
  of_process.has_failed = true;
  log_warn("{}; nothing is {}", status.message(), traces ? "traced" : "recorded");
  return nullptr;
}

Result<std::shared_ptr<Recorder>> Recorder::open(const std::string& path, std::uint64_t max_bytes) {
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  const int file = open_file(path);
  if (file < 0) {
    return system_error("RIFFLE_RECORD: cannot write " + path + ": " + std::strerror(errno) +
                        "; accepted is a file or a folder that this process may write");
  }
  try {
    return std::shared_ptr<Recorder>(new Recorder(path, max_bytes, file));
  } catch (const std::exception& e) {
    ::close(file);
    return system_error(std::string("RIFFLE_RECORD: no thread to write with: ") + e.what());
  }
}

Recorder::Recorder(std::string path, std::uint64_t max_bytes, int file)
    : path_(std::move(path)), max_bytes_(max_bytes), process_(getpid()), file_(file) {
  struct stat found {};
  if (fstat(file_, &found) == 0) file_bytes_ = static_cast<std::uint64_t>(found.st_size);
  thread_ = start_without_signals([this] { run(); });
}

Recorder::~Recorder() {
  if (process_ != getpid()) {  // a forked child: the thread is not here
    thread_.detach();
    static_cast<void>(changed_.release());
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_->notify_all();
  thread_.join();
  if (file_ >= 0) ::close(file_);
}

void Recorder::write(const std::string& line) {
  if (process_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  if (queued_.size() + line.size() > kMaxQueuedBytes) {
    ++dropped_;
    return;
  }
  queued_ += line;
}

void Recorder::write_standing(const std::string& key, std::string line) {
  if (process_ != getpid()) return;
  write(line);
  const std::lock_guard lock(mutex_);
  standing_[key] = std::move(line);
}

void Recorder::drop_standing(const std::string& key) {
  if (process_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  standing_.erase(key);
}

void Recorder::add_source(std::shared_ptr<LineSource> source) {
  if (process_ != getpid()) return;
  const std::lock_guard lock(mutex_);
  sources_.push_back(std::move(source));
}

void Recorder::flush() {
  if (process_ != getpid()) return;
  std::unique_lock lock(mutex_);
  const std::uint64_t wanted = ++flushes_asked_;
  changed_->notify_all();
  changed_->wait_for(lock, std::chrono::seconds(1), [&] { return flushes_done_ >= wanted; });
}

// Of those without another holder nothing more will come: they are asked for the last time.
std::vector<std::shared_ptr<LineSource>> Recorder::sources_to_ask() {
  std::vector<std::shared_ptr<LineSource>> all = sources_;
  // Both lists hold it.
  std::erase_if(sources_, [](const auto& source) { return source.use_count() == 2; });
  return all;
}

void Recorder::run() {
  pthread_setname_np(pthread_self(), "riffle-record");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_->wait_for(lock, std::chrono::milliseconds(kFlushMs),
                       [this] { return is_over_ || flushes_asked_ > flushes_done_; });
    const bool ends = is_over_;
    const std::uint64_t flushes = flushes_asked_;
    lock.unlock();
    catching([this] { write_queued(); },
             [](const Status& why) { log_caught("a part of the record is lost", why); });
    lock.lock();
    flushes_done_ = flushes;
    changed_->notify_all();
    if (ends) return;
  }
}

void Recorder::write_queued() {
  std::unique_lock lock(mutex_);
  std::string text = std::exchange(queued_, {});
  if (const std::uint64_t dropped = std::exchange(dropped_, 0); dropped > 0) {
    text += JsonLine().add("type", "dropped").add("lines", dropped).take();
  }
  const auto sources = sources_to_ask();
  lock.unlock();
  if (!text.empty()) put(text);
  for (const auto& source : sources) {
    source->put_lines([this](const std::string& line) { put(line); });
  }
}

void Recorder::put(const std::string& text) {
  if (file_ >= 0 && file_bytes_ > 0 && file_bytes_ + text.size() > max_bytes_) start_new_file();
  for (std::size_t done = 0; file_ >= 0 && done < text.size();) {
    const ssize_t n = ::write(file_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return give_up(std::strerror(errno));
    done += static_cast<std::size_t>(n);
    file_bytes_ += static_cast<std::uint64_t>(n);
  }
}

void Recorder::start_new_file() {
  std::string standing;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, line] : standing_) standing += line;
  }
  ::close(file_);
  if (std::rename(path_.c_str(), (path_ + ".1").c_str()) != 0) {
    file_ = -1;
    return give_up(std::string("cannot rename it to .1: ") + std::strerror(errno));
  }
  file_ = open_file(path_);
  file_bytes_ = 0;
  if (file_ < 0) return give_up(std::strerror(errno));
  put(standing);
}

void Recorder::give_up(const std::string& why) {
  log_warn("RIFFLE_RECORD: {}: {}; recording ends", path_, why);
  if (has_failed_ != nullptr) *has_failed_ = true;
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

}  // namespace riffle
