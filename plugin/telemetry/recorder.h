// Recorder: a file of lines, the one behind RIFFLE_RECORD or its trace beside it (RIFFLE_TRACE).
// Lines are queued here and written by a thread of its own, at the latest kFlushMs later, so that a
// thread that records never waits for a file system.
//
// One of each per process, alive while it is held. The file grows to RIFFLE_RECORD_BYTES, then
// becomes FILE.1 (replacing the last FILE.1) and a new one begins with the standing lines. What the
// file system does not take in time is dropped and counted; a file that cannot be written, now or
// later (a full disk), is reported once and recording ends, for communicators to come as well. Any
// thread. A forked child records nothing.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

struct RecordOptions {
  std::string path;  // RIFFLE_RECORD, with its %h, %p, ... (config/file_pattern.h); empty: none
  std::uint64_t max_bytes = 16 << 20;  // of one file
  // RIFFLE_TRACE: every so many-th all-reduce is traced, into a file beside; 0: none.
  std::uint32_t trace_every = 0;
};

// Has lines that are made only when they are written.
class LineSource {
 public:
  using Put = std::function<void(const std::string& line)>;
  virtual ~LineSource() = default;
  // On the recorder's thread. Lines end in line feeds.
  virtual void put_lines(const Put& put) = 0;
};

class Recorder {
 public:
  static constexpr int kFlushMs = 500;
  static constexpr std::size_t kMaxQueuedBytes = 4 << 20;

  enum class Content { kRecord, kTrace };
  // What the trace's file has behind the name of the record's.
  static constexpr char kTraceSuffix[] = ".trace";

  // The process's recorder, by the options of the call that makes it; null where they name no file
  // or it cannot be opened.
  static std::shared_ptr<Recorder> acquire(const RecordOptions& options,
                                           Content content = Content::kRecord);
  // A recorder of its own, for tests and tools. `max_bytes`: of one file.
  static Result<std::shared_ptr<Recorder>> open(const std::string& path, std::uint64_t max_bytes);
  ~Recorder();  // writes what is queued
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // `line` ends in a line feed.
  void write(const std::string& line);
  // A line that a reader needs to understand later ones: repeated in front of every new file until
  // drop_standing(). A new line of the same key replaces the old one.
  void write_standing(const std::string& key, std::string line);
  void drop_standing(const std::string& key);
  // Asks it for lines whenever it writes; once more when no other holder is left, then never again.
  void add_source(std::shared_ptr<LineSource> source);
  // Returns when all lines so far are in the file, those of sources too, or after a second.
  void flush();

  const std::string& path() const { return path_; }

 private:
  Recorder(std::string path, std::uint64_t max_bytes, int file);

  void run();
  void write_queued();
  std::vector<std::shared_ptr<LineSource>> sources_to_ask();
  void put(const std::string& text);
  void start_new_file();
  void give_up(const std::string& why);

  const std::string path_;
  const std::uint64_t max_bytes_;
  const pid_t process_;

  std::atomic<bool>* has_failed_ =
      nullptr;  // of the process; set before there is anything to write

  // Writer thread only.
  int file_;
  std::uint64_t file_bytes_ = 0;

  std::mutex mutex_;
  // Of everything below. On the heap because a forked child leaks it: to destroy it would wait for
  // the thread that is not there.
  std::unique_ptr<std::condition_variable> changed_ = std::make_unique<std::condition_variable>();
  std::string queued_;
  std::map<std::string, std::string> standing_;
  std::vector<std::shared_ptr<LineSource>> sources_;
  std::uint64_t dropped_ = 0;
  std::uint64_t flushes_asked_ = 0, flushes_done_ = 0;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace riffle
