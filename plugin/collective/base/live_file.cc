#include "plugin/collective/base/live_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "topology/base/folder.h"

namespace riffle {
namespace {

// A file that is still empty after this time belongs to a process that died while writing it.
constexpr std::time_t kUnfinishedAgeSeconds = 60;
constexpr std::size_t kMaxBytes = 64 << 10;

class OwnFiles;
OwnFiles& own_files();

// Paths of this process's own files. A process must never open such a file a second time: closing
// any descriptor of a file drops the process's record locks on it.
class OwnFiles {
 public:
  OwnFiles() {
    // Training jobs often exit without destroying their communicators.
    std::atexit([] { own_files().remove(); });
  }

  // The set under its lock. A forked child starts with none: its parent's files are others' now.
  template <class Use>
  auto with(Use&& use) {
    const std::lock_guard lock(mutex_);
    if (pid_ != ::getpid()) paths_.clear();
    pid_ = ::getpid();
    return use(paths_);
  }

 private:
  void remove() {
    if (pid_ != ::getpid()) return;  // before the lock, which a forked child may find taken
    with([](const std::set<std::string>& own) {
      for (const std::string& path : own) ::unlink(path.c_str());
    });
  }

  std::mutex mutex_;
  std::atomic<int> pid_ = 0;
  std::set<std::string> paths_;
};

OwnFiles& own_files() {
  static auto* files = new OwnFiles;  // never destroyed: files may outlive static objects
  return *files;
}

Status failed(const std::string& what) { return system_error(what + ": " + std::strerror(errno)); }

}  // namespace

Status prepare_live_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed("cannot create " + directory);
  }
  struct stat info {};
  if (::lstat(directory.c_str(), &info) != 0) return failed("cannot read " + directory);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return system_error(directory + " is not a directory that only this user can write");
  }
  return Status::ok();
}

namespace {

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool is_locked(int fd) {
  struct flock lock = whole_file(F_WRLCK);
  return ::fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool write_all(int fd, const std::string& content) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t n = ::write(fd, content.data() + done, content.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

std::string read_all(int fd) {
  std::string content;
  std::array<char, 4096> buffer;
  while (content.size() < kMaxBytes) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    content.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return content;
}

// The content of another process's file; empty for a leftover, which is removed.
std::string read_or_remove(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return {};
  std::string content;
  // First its size: content is written under the lock alone, which a new file may get only now.
  struct stat info {};
  const bool is_known = ::fstat(fd, &info) == 0;
  if (is_locked(fd)) {
    content = read_all(fd);
  } else if (is_known && S_ISREG(info.st_mode) &&
             (info.st_size > 0 || ::time(nullptr) - info.st_mtime > kUnfinishedAgeSeconds)) {
    ::unlink(path.c_str());
  }
  ::close(fd);
  return content;
}

// The paths of all files that are not ours and whose names start with `prefix`.
std::vector<std::string> others(const std::string& directory, const std::string& prefix,
                                const std::set<std::string>& own) {
  std::vector<std::string> paths;
  (void)for_each_name(directory, [&](std::string_view name) {
    std::string path = directory + "/" + std::string(name);
    if (name[0] == '.' || !name.starts_with(prefix) || own.contains(path)) return;
    paths.push_back(std::move(path));
  });
  return paths;
}

}  // namespace

Result<std::unique_ptr<LiveFile>> LiveFile::create(const std::string& directory,
                                                   const std::string& prefix,
                                                   const std::string& content) {
  if (Status status = prepare_live_directory(directory); !status) return status;
  const std::string stem = directory + "/" + prefix + std::to_string(::getpid()) + ".";
  using Made = Result<std::unique_ptr<LiveFile>>;
  return own_files().with([&](std::set<std::string>& own) -> Made {
    // Leftovers of every prefix, as theirs may never be looked for again.
    for (const std::string& path : others(directory, "", own)) (void)read_or_remove(path);
    static unsigned count = 0;
    int fd = -1;
    std::string path;
    do {  // the name may be taken by a leftover, or by a process of another PID namespace
      path = stem + std::to_string(count++);
      fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) return failed("cannot create " + path);
    struct flock lock = whole_file(F_WRLCK);
    if (::fcntl(fd, F_SETLK, &lock) != 0 || !write_all(fd, content)) {
      Status status = failed("cannot write " + path);
      ::unlink(path.c_str());
      ::close(fd);
      return status;
    }
    own.insert(path);
    return std::unique_ptr<LiveFile>(new LiveFile(std::move(path), fd));
  });
}

LiveFile::LiveFile(std::string path, int fd)
    : path_(std::move(path)), fd_(fd), owner_pid_(::getpid()) {}

LiveFile::~LiveFile() {
  if (::getpid() == owner_pid_) {
    own_files().with([this](std::set<std::string>& own) {
      ::unlink(path_.c_str());
      own.erase(path_);
    });
  }
  ::close(fd_);
}

std::vector<std::string> read_live_files(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> contents;
  own_files().with([&](const std::set<std::string>& own) {
    for (const std::string& path : others(directory, prefix, own)) {
      if (std::string content = read_or_remove(path); !content.empty()) {
        contents.push_back(std::move(content));
      }
    }
  });
  return contents;
}

}  // namespace riffle
