#include "plugin/transport/crypto/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "plugin/transport/base/errno_text.h"

namespace riffle {
namespace {

using Content = std::array<std::uint8_t, kMostKeyFileBytes + 1>;  // one more shows a larger file

class File {
 public:
  // A pipe would be waited for.
  explicit File(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

Status refused(const std::string& path, const std::string& why) {
  return invalid_argument("RIFFLE_KEY_FILE " + path + " " + why);
}

Status unreadable(const std::string& path, int error) {
  return system_error("cannot read RIFFLE_KEY_FILE " + path + ": " + errno_text(error));
}

// Of the file that is open, so that no other one can take its place in between.
Status check_open(int fd, const std::string& path) {
  struct stat found;
  if (::fstat(fd, &found) != 0) return unreadable(path, errno);
  if (!S_ISREG(found.st_mode)) return refused(path, "is not a regular file");
  if (found.st_uid != ::geteuid() && found.st_uid != 0) {
    return refused(path, "belongs to user " + std::to_string(found.st_uid) +
                             ": it must belong to the job's user (" + std::to_string(::geteuid()) +
                             ") or to root");
  }
  if ((found.st_mode & 077) != 0) {
    std::array<char, 8> mode;
    std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(found.st_mode & 07777));
    return refused(path, "has mode " + std::string(mode.data()) +
                             ", which lets others at it: chmod 0600 (or 0400)");
  }
  if (static_cast<std::size_t>(found.st_size) < kLeastKeyFileBytes ||
      static_cast<std::size_t>(found.st_size) > kMostKeyFileBytes) {
    return refused(path, "has " + std::to_string(found.st_size) +
                             " bytes: " + std::to_string(kLeastKeyFileBytes) + ".." +
                             std::to_string(kMostKeyFileBytes) + " random ones are wanted");
  }
  return Status::ok();
}

Result<std::size_t> read_all(int fd, const std::string& path, Content* content) {
  std::size_t have = 0;
  while (have < content->size()) {
    const ssize_t n = ::read(fd, content->data() + have, content->size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return unreadable(path, errno);
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  if (have < kLeastKeyFileBytes || have > kMostKeyFileBytes) {
    return refused(path, "changed its size while it was read");
  }
  return have;
}

}  // namespace

PresharedKey::PresharedKey(ByteView content) : digest_(make_locked<Key>()) {
  derive_key({}, "riffle key file", {content}, digest_.get());
}

Status check_key_file(const std::string& path) {
  const File file(path);
  if (file.get() < 0) return unreadable(path, errno);
  return check_open(file.get(), path);
}

Result<std::shared_ptr<const PresharedKey>> read_key_file(const std::string& path) {
  const File file(path);
  if (file.get() < 0) return unreadable(path, errno);
  if (Status s = check_open(file.get(), path); !s) return s;
  const Locked<Content> content = make_locked<Content>();
  const Result<std::size_t> size = read_all(file.get(), path, content.get());
  if (!size) return size.status();
  return std::make_shared<const PresharedKey>(ByteView(content->data(), *size));
}

}  // namespace riffle
