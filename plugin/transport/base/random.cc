#include "plugin/transport/base/random.h"

#include <sodium.h>

#include "topology/base/check.h"

namespace riffle {

void start_sodium() {
  static const int ready = sodium_init();  // thread safe, and harmless when done before
  RIFFLE_CHECK(ready >= 0, "libsodium does not start");
}

void fill_random(void* data, std::size_t size) {
  start_sodium();
  randombytes_buf(data, size);
}

std::uint64_t random_u64() {
  std::uint64_t value;
  fill_random(&value, sizeof value);
  return value;
}

}  // namespace riffle
