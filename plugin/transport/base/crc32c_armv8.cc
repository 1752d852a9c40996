#include "plugin/transport/base/crc32c_armv8.h"

#if defined(__aarch64__)
#include <arm_acle.h>

namespace riffle::detail {

std::uint32_t crc32c_armv8(const std::uint8_t* data, std::size_t size, std::uint32_t crc) {
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, data, 8);
    crc = __crc32cd(crc, word);
  }
  for (; size > 0; ++data, --size) crc = __crc32cb(crc, *data);
  return crc;
}

}  // namespace riffle::detail

#endif
