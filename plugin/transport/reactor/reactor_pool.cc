// The process-wide pool: RIFFLE_THREADS reactors, each alive while it is held.
#include <pthread.h>

#include <limits>
#include <mutex>
#include <vector>

#include "plugin/transport/device/placement.h"
#include "plugin/transport/reactor/fork_registry.h"
#include "plugin/transport/reactor/open_files.h"
#include "plugin/transport/reactor/reactor_thread.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

struct Pool {
  std::mutex mutex;
  std::vector<std::weak_ptr<Reactor>> slots;
  std::size_t next = 0;
};

// Never destroyed, and locked across a fork, so that the child finds it in order.
Pool& pool() {
  static Pool* const instance = [] {
    auto* made = new Pool;
    // Before a fork the handlers lock in the opposite order of their registration. acquire() holds
    // the pool's lock while it opens descriptors, so the registry's handlers must be there first.
    static_cast<void>(fork_registry::generation());
    pthread_atfork([] { pool().mutex.lock(); }, [] { pool().mutex.unlock(); },
                   [] { pool().mutex.unlock(); });
    return made;
  }();
  return *instance;
}

// With CPUs to spare, work that is not short has one of its own, beside the caller's. On few of
// them the two would take turns on one: a caller that waits spins, as NCCL's progress thread does.
// It loses its CPU to others, and one that has not called for a while is late there, not gone.
Reactor::Polling polling_of(const ThreadOptions& options) {
  constexpr std::size_t kShortWork = 64 << 10;
  const bool has_few = placement::job_mask().size() < kFewestCores;
  std::size_t bytes = has_few ? std::numeric_limits<std::size_t>::max() : kShortWork;
  if (options.polled_bytes >= 0) bytes = static_cast<std::size_t>(options.polled_bytes);
  return {bytes, has_few ? 10 * kMillisecond : kMillisecond};
}

}  // namespace

std::shared_ptr<Reactor> Reactor::acquire(const TransportOptions& options) {
  Pool& p = pool();
  const std::size_t next = [&p] {
    const std::lock_guard lock(p.mutex);
    return p.next++;
  }();
  return acquire(options, next);
}

std::shared_ptr<Reactor> Reactor::acquire(const TransportOptions& options, std::size_t index) {
  Pool& p = pool();
  const std::lock_guard lock(p.mutex);
  p.slots.resize(static_cast<std::size_t>(options.threads.count));
  index %= p.slots.size();
  std::weak_ptr<Reactor>& slot = p.slots[index];
  std::shared_ptr<Reactor> reactor = slot.lock();
  // A child does not inherit the thread: what the parent's reactor left in its memory is of no use.
  if (reactor == nullptr ||
      !static_cast<const ReactorThread*>(reactor.get())->is_of_this_process()) {
    raise_open_files();
    reactor = std::shared_ptr<Reactor>(
        new ReactorThread(
            [index = static_cast<int>(index), threads = options.threads] {
              return placement::cpus_of_thread(index, threads);
            },
            polling_of(options.threads)),
        [](Reactor* r) { ReactorThread::retire(static_cast<ReactorThread*>(r)); });
    slot = reactor;
  }
  return reactor;
}

}  // namespace riffle
