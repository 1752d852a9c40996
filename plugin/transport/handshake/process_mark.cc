#include "plugin/transport/handshake/process_mark.h"

#include <atomic>

#include "plugin/transport/base/random.h"
#include "plugin/transport/reactor/fork_registry.h"

namespace riffle {
namespace {

constexpr int kCounterBits = 24;
constexpr std::uint64_t kCounterMask = (std::uint64_t{1} << kCounterBits) - 1;

// Without a lock, which a fork might find taken: the generation that the mark was drawn in, and one
// more, beside it.
std::uint64_t own_mark() {
  static std::atomic<std::uint64_t> word{0};
  const std::uint64_t generation = (fork_registry::generation() + 1) & kCounterMask;
  std::uint64_t seen = word.load();
  while (seen >> (64 - kCounterBits) != generation) {
    const std::uint64_t drawn = generation << (64 - kCounterBits) | random_u64() >> kCounterBits;
    if (word.compare_exchange_weak(seen, drawn)) return drawn & ~std::uint64_t{0} >> kCounterBits;
  }
  return seen & ~std::uint64_t{0} >> kCounterBits;
}

}  // namespace

std::uint64_t next_nonce() {
  static std::atomic<std::uint64_t> count{0};
  return own_mark() << kCounterBits | (count.fetch_add(1) & kCounterMask);
}

}  // namespace riffle
