#include "tools/live/record_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

namespace riffle::tools {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~OpenFile() {
    if (file_ >= 0) ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int get() const { return file_; }

 private:
  const int file_;
};

}  // namespace

double unix_now_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

RecordFollower::RecordFollower(std::vector<std::string> paths, FollowOptions options)
    : paths_(std::move(paths)), options_(options) {}

Status RecordFollower::look() {
  const auto files = record_files(paths_);
  if (!files) return files.status();
  const double now_s = unix_now_s();
  std::map<Inode, std::uint64_t> found;
  Status status;
  for (const std::string& path : *files) {
    if (Status s = read(path, now_s, &found); status && !s) status = s;
  }
  known_ = std::move(found);
  const double oldest_t =
      options_.forget_s > 0 ? now_s - options_.forget_s : -std::numeric_limits<double>::infinity();
  lines_.forget(oldest_t, options_.window_s);
  return status;
}

// A file that is gone by now is left out.
Status RecordFollower::read(const std::string& path, double now_s,
                            std::map<Inode, std::uint64_t>* found) {
  const OpenFile file(path);
  struct stat is {};
  if (file.get() < 0 && errno == ENOENT) return Status::ok();
  if (file.get() < 0 || fstat(file.get(), &is) != 0) {
    return system_error(path + ": cannot be read: " + std::strerror(errno));
  }
  const Inode inode{is.st_dev, is.st_ino};
  if (found->contains(inode)) return Status::ok();  // it was renamed while we looked
  const auto known = known_.find(inode);
  const bool is_over =
      options_.forget_s > 0 && static_cast<double>(is.st_mtime) < now_s - options_.forget_s;
  if (is_over) return Status::ok();  // if it is written again it is read again, from the front
  const auto end = static_cast<std::uint64_t>(is.st_size);
  std::uint64_t from = known == known_.end() ? 0 : known->second;
  if (from > end) from = 0;  // another file under a number that was given back
  (*found)[inode] = read_on(file.get(), path, from, end);
  return Status::ok();
}

// Up to its last line feed; returns where that is.
std::uint64_t RecordFollower::read_on(int file, const std::string& path, std::uint64_t from,
                                      std::uint64_t end) {
  const std::uint64_t recent = end > kRecentBytes ? end - kRecentBytes : 0;
  std::string block(kBlockBytes, '\0'), line;
  std::uint64_t line_begin = from;
  for (std::uint64_t at = from; at < end;) {
    const std::size_t wanted = std::min<std::uint64_t>(kBlockBytes, end - at);
    const ssize_t n = ::pread(file, block.data(), wanted, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    const auto got = static_cast<std::size_t>(n);
    for (std::size_t begin = 0; begin < got;) {
      const std::size_t feed = std::min(block.find('\n', begin), got);
      if (line.size() <= kMaxRecordLineBytes) line.append(block, begin, feed - begin);
      begin = feed + 1;
      if (feed == got) break;
      add(path, line, line_begin >= recent);
      line.clear();
      line_begin = at + begin;
    }
    at += got;
  }
  return line_begin;
}

void RecordFollower::add(const std::string& path, const std::string& line, bool is_recent) {
  // To read all samples of a long job takes long, and only the newest count.
  if (!is_recent && line.starts_with(R"({"type":"sample")")) return;
  if (!lines_.add(path, line)) ++bad_lines_;
}

}  // namespace riffle::tools
