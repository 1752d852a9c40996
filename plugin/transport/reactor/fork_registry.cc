#include "plugin/transport/reactor/fork_registry.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <vector>

namespace riffle::fork_registry {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<bool> open;  // by descriptor number
  std::atomic<std::uint32_t> generation{0};
};

// Never destroyed: threads and fork handlers may use it while the process exits.
Registry& registry() {
  static Registry* const instance = [] {
    auto* made = new Registry;
    pthread_atfork([] { registry().mutex.lock(); }, [] { registry().mutex.unlock(); },
                   [] {
                     Registry& r = registry();
                     for (std::size_t fd = 0; fd < r.open.size(); ++fd) {
                       if (r.open[fd]) ::close(static_cast<int>(fd));
                     }
                     r.open.clear();
                     r.generation.fetch_add(1, std::memory_order_relaxed);
                     r.mutex.unlock();
                   });
    return made;
  }();
  return *instance;
}

}  // namespace

int open(const std::function<int()>& make) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const int fd = make();
  if (fd < 0) return fd;
  const auto index = static_cast<std::size_t>(fd);
  if (r.open.size() <= index) r.open.resize(index + 64);
  r.open[index] = true;
  return fd;
}

void close(int fd) {
  Registry& r = registry();
  const std::lock_guard lock(r.mutex);
  const auto index = static_cast<std::size_t>(fd);
  // In a forked child the number was closed already and may belong to something else by now.
  if (index >= r.open.size() || !r.open[index]) return;
  r.open[index] = false;
  ::close(fd);
}

std::uint32_t generation() { return registry().generation.load(std::memory_order_relaxed); }

}  // namespace riffle::fork_registry
