// CRC32C with ARMv8's instructions, without the inversions before and after. Only on processors
// that have them (HWCAP_CRC32), only on aarch64. Internal.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle::detail {

std::uint32_t crc32c_armv8(const std::uint8_t* data, std::size_t size, std::uint32_t crc);

}  // namespace riffle::detail
