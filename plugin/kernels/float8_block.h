// Numbers in 8 bits, with a power of two for every 32 of them: four blocks of MXFP8 (Open Compute
// Project, Microscaling Formats v1.0, 5.2: elements E4M3, scales E8M0) side by side, 128 numbers in
// 132 bytes: first the four scales, then the codes. Of DataType::kFloat8Block one element is such a
// block of 128.
//
// The scale is the least power of two with which nothing saturates; that of v1.0, 6.3 may let the
// largest numbers do so. A number x is off by at most max(|x| / 16, a / 2^17, 2^-136), a being the
// largest magnitude among its 32. Where one of the 32 is not finite, none of them is a number
// (scale 255); numbers that round beyond float32 become infinite.
//
// The same bits on every machine and instruction set, under any floating-point mode of the thread.
// Any thread; nothing is allocated.
#pragma once

#include <cstddef>

#include "plugin/kernels/types.h"
#include "topology/base/isa.h"

namespace riffle {

constexpr std::size_t float8_blocks(std::size_t numbers) {
  return (numbers + kFloat8BlockElements - 1) / kFloat8BlockElements;
}

// `to` gets float8_blocks(count) blocks; what the last one has beyond is 0.
void pack_float8(const float* from, std::size_t count, std::byte* to);
void unpack_float8(const std::byte* from, std::size_t count, float* to);
// The same with a chosen instruction set, for tests and benchmarks; `isa` must be available.
void pack_float8_with(Isa isa, const float* from, std::size_t count, std::byte* to);
void unpack_float8_with(Isa isa, const std::byte* from, std::size_t count, float* to);

}  // namespace riffle
