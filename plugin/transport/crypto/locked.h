// Memory for keys: locked against swapping, left out of core dumps, between pages that nothing may
// touch, and wiped when it is freed (libsodium's sodium_malloc). Where the process may lock no more
// memory (RLIMIT_MEMLOCK) the rest still holds.
#pragma once

#include <sodium.h>

#include <memory>
#include <new>
#include <type_traits>

#include "plugin/transport/base/random.h"

namespace riffle {

struct FreeLocked {
  void operator()(void* memory) const noexcept { sodium_free(memory); }
};

template <class T>
using Locked = std::unique_ptr<T, FreeLocked>;

// Takes whole pages of its own: for what belongs to a connection or lives longer.
template <class T>
Locked<T> make_locked() {
  static_assert(std::is_trivially_destructible_v<T>);
  start_sodium();
  void* const memory = sodium_malloc(sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return Locked<T>(new (memory) T());
}

}  // namespace riffle
