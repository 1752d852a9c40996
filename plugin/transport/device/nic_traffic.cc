#include "plugin/transport/device/nic_traffic.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "plugin/config/log.h"

namespace riffle {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share it");

bool is_safe(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0;
}

}  // namespace

std::shared_ptr<NicTraffic> NicTraffic::of(const std::vector<NicAddress>& addresses) {
  struct stat info {};
  const bool knows = ::stat("/proc/self/ns/net", &info) == 0;
  std::string path = "/dev/shm/riffle-traffic-" + std::to_string(::geteuid()) + "-" +
                     std::to_string(knows ? info.st_ino : 0);
  std::set<std::string> interfaces;
  for (const NicAddress& address : addresses) interfaces.insert(address.interface);
  for (const std::string& interface : interfaces) path += "-" + interface;
  return at(path);
}

std::shared_ptr<NicTraffic> NicTraffic::at(const std::string& path) {
  static std::mutex mutex;
  static auto* const known = new std::map<std::string, std::weak_ptr<NicTraffic>>;
  const std::lock_guard lock(mutex);
  std::weak_ptr<NicTraffic>& place = (*known)[path];
  if (std::shared_ptr<NicTraffic> one = place.lock()) return one;
  std::shared_ptr<NicTraffic> made(new NicTraffic(path));
  place = made;
  return made;
}

NicTraffic::NicTraffic(std::string path) : path_(std::move(path)) {
  if (share()) return;
  log_info("{} cannot be shared: communicators of other processes count as foreign traffic", path_);
  account_ = new Account;
}

// The last user removes the file under an exclusive lock, so a file that still has a name once the
// shared lock is held stays.
bool NicTraffic::share() {
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd_ < 0) return false;
    struct stat info {};
    const bool is_held = ::flock(fd_, LOCK_SH) == 0 && ::fstat(fd_, &info) == 0;
    if (is_held && info.st_nlink == 0) {
      ::close(fd_);
      continue;
    }
    // Room now rather than a fatal signal where memory is short.
    if (is_held && is_safe(info) && ::posix_fallocate(fd_, 0, sizeof(Account)) == 0) {
      void* const memory =
          ::mmap(nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
      if (memory != MAP_FAILED) {
        account_ = static_cast<Account*>(memory);
        return true;
      }
    }
    break;
  }
  ::close(fd_);
  fd_ = -1;
  return false;
}

NicTraffic::~NicTraffic() {
  if (fd_ < 0) {
    delete account_;
    return;
  }
  ::munmap(account_, sizeof(Account));
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) ::unlink(path_.c_str());
  ::close(fd_);
}

std::size_t NicTraffic::index(std::uint64_t communicator) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;  // Knuth's multiplicative hash
  return 1 + (communicator * kGoldenRatio >> 32) % (kSlots - 1);
}

NicTraffic::Slot& NicTraffic::use(std::size_t slot) {
  account_->used[slot / 64].fetch_or(std::uint64_t{1} << slot % 64, std::memory_order_relaxed);
  return account_->slots[slot];
}

NicBytes NicTraffic::others(std::uint64_t communicator) const {
  const std::size_t own = index(communicator);
  NicBytes sum;
  for (std::size_t word = 0; word < account_->used.size(); ++word) {
    std::uint64_t used = account_->used[word].load(std::memory_order_relaxed);
    for (; used != 0; used &= used - 1) {
      const std::size_t slot = word * 64 + static_cast<std::size_t>(std::countr_zero(used));
      if (slot == own) continue;
      sum.out += account_->slots[slot].out.load(std::memory_order_relaxed);
      sum.in += account_->slots[slot].in.load(std::memory_order_relaxed);
    }
  }
  return sum;
}

}  // namespace riffle
