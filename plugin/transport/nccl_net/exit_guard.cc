#include "plugin/transport/nccl_net/exit_guard.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "plugin/transport/reactor/fork_registry.h"

namespace riffle::nccl_net {
namespace {

// For calls that are inside when the process exits; one that hangs must not keep it.
constexpr int kLongestWaitMs = 1'000;

struct Door {
  std::atomic<bool> is_closed{false};
  std::atomic<int> inside{0};
  const std::uint32_t generation = fork_registry::generation();
};

Door& door() {
  static Door& one = *new Door;  // outlives every thread
  return one;
}

bool is_of_this_process() { return door().generation == fork_registry::generation(); }

void on_exit() {
  if (!is_of_this_process()) return;
  door().is_closed.store(true);
  for (int ms = 0; ms < kLongestWaitMs && door().inside.load() > 0; ++ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

LibraryUse::LibraryUse() {
  Door& d = door();
  ++d.inside;
  may_ = !d.is_closed.load() && is_of_this_process();
  if (!may_) --d.inside;
}

LibraryUse::~LibraryUse() {
  if (may_) --door().inside;
}

void guard_exit() { (void)std::atexit(on_exit); }

}  // namespace riffle::nccl_net
