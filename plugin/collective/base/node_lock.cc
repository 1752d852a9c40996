#include "plugin/collective/base/node_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "plugin/collective/base/live_file.h"
#include "plugin/config/log.h"

namespace riffle {
namespace {

// flock(2) rather than a record lock: it tells apart two holders in one process, too.
class Held {
 public:
  explicit Held(int fd) : fd_(fd) {}
  // A forked child may have the descriptor: closing it alone would not give the lock back.
  ~Held() {
    if (fd_ < 0) return;
    ::flock(fd_, LOCK_UN);
    ::close(fd_);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  const int fd_;
};

// Names with a dot in front are none of live_file.h's.
std::string path_in(const std::string& directory) {
  struct stat info {};
  const bool knows = ::stat("/proc/self/ns/net", &info) == 0;
  return directory + "/.probe-" + std::to_string(knows ? info.st_ino : 0);
}

}  // namespace

NodeLock try_node_lock(std::uint64_t holder) {
  return try_node_lock(holder, "/dev/shm/riffle-" + std::to_string(::geteuid()));
}

NodeLock try_node_lock(std::uint64_t holder, const std::string& directory) {
  NodeLock nothing_held = std::make_shared<Held>(-1);
  if (const Status s = prepare_live_directory(directory); !s) {
    log_info("{}; probes of several jobs may disturb each other", s.message());
    return nothing_held;
  }
  const int fd =
      ::open(path_in(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return nothing_held;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) {
    // Should this fail, others that may share it wait instead.
    (void)!::pwrite(fd, &holder, sizeof holder, 0);
    return std::make_shared<Held>(fd);
  }
  std::uint64_t other = 0;
  const bool is_shared = ::pread(fd, &other, sizeof other, 0) == sizeof other && other == holder;
  ::close(fd);
  return is_shared ? nothing_held : nullptr;
}

}  // namespace riffle
