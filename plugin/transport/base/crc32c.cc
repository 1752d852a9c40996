// CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected 0x82F63B78; RFC 3720 B.4). The processor's
// instruction where it has one (SSE4.2, ARMv8.1), chosen at run time; else "slicing by 8" tables.
#include <array>
#include <cstring>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/base/wire.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

#include "plugin/transport/base/crc32c_armv8.h"
#endif

namespace riffle {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    t[0][i] = crc;
  }
  for (std::uint32_t i = 0; i < 256; ++i) {
    for (std::size_t k = 1; k < 8; ++k) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
  }
  return t;
}

constexpr Tables kTables = make_tables();

std::uint32_t crc32c_tables(const std::uint8_t* p, std::size_t n, std::uint32_t crc) {
  for (; n >= 8; p += 8, n -= 8) {
    const std::uint32_t low = get<std::uint32_t>(p) ^ crc;
    const std::uint32_t high = get<std::uint32_t>(p + 4);
    crc = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      crc ^= kTables[7 - k][low >> (8 * k) & 255] ^ kTables[3 - k][high >> (8 * k) & 255];
    }
  }
  for (; n > 0; ++p, --n) crc = crc >> 8 ^ kTables[0][(crc ^ *p) & 255];
  return crc;
}

#if defined(__x86_64__)
// (Not every compiler's runtime library has what __builtin_cpu_supports reads.)
bool has_sse42() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_SSE4_2) != 0;
}

__attribute__((target("sse4.2,crc32"))) std::uint32_t crc32c_sse42(const std::uint8_t* p,
                                                                   std::size_t n,
                                                                   std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; n > 0; ++p, --n) crc = _mm_crc32_u8(crc, *p);
  return crc;
}
#endif

}  // namespace

namespace detail {

std::uint32_t crc32c_portable(const void* data, std::size_t size, std::uint32_t seed) {
  return ~crc32c_tables(static_cast<const std::uint8_t*>(data), size, ~seed);
}

}  // namespace detail

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t seed) {
#if defined(__x86_64__)
  static const bool has_instruction = has_sse42();
  if (has_instruction) return ~crc32c_sse42(static_cast<const std::uint8_t*>(data), size, ~seed);
#elif defined(__aarch64__)
  static const bool has_crc32 = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  if (has_crc32) {
    return ~detail::crc32c_armv8(static_cast<const std::uint8_t*>(data), size, ~seed);
  }
#endif
  return detail::crc32c_portable(data, size, seed);
}

}  // namespace riffle
