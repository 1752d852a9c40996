// What CUDA C++ has and C++ has not, on the emulator: included before the kernels' source, inside
// of no namespace. The source itself is then included inside a namespace, after what it includes
// itself.
#pragma once

#include <bit>
#include <cstdint>

#include "sparse/cuda/arguments.h"
#include "test/cuda/emulator.h"

#define __device__
#define __shared__ static __attribute__((section("riffle_shared")))
#define threadIdx (::riffle::emulator::thread_index())
#define blockIdx (::riffle::emulator::block_index())
#define gridDim (::riffle::emulator::grid_dimension())
#define RIFFLE_KERNEL void

namespace riffle::emulator {

inline std::uint32_t ballot(unsigned /*all lanes*/, bool own) {
  const std::uint32_t* const lanes = exchange_in_warp(own ? 1 : 0);
  std::uint32_t bits = 0;
  for (unsigned i = 0; i < 32; ++i) bits |= lanes[i] << i;
  return bits;
}
inline unsigned shuffled_up(unsigned /*all lanes*/, unsigned own, unsigned by) {
  const unsigned lane = thread_index().x % 32;
  const std::uint32_t* const lanes = exchange_in_warp(own);
  return lane >= by ? lanes[lane - by] : own;
}
inline unsigned add_at(unsigned* at, unsigned value) {
  const unsigned before = *at;
  *at += value;
  return before;
}

}  // namespace riffle::emulator

#define __ballot_sync ::riffle::emulator::ballot
#define __shfl_up_sync ::riffle::emulator::shuffled_up
#define atomicAdd ::riffle::emulator::add_at
#define __ffs(bits) __builtin_ffs(bits)
#define __float_as_uint(x) std::bit_cast<unsigned>(static_cast<float>(x))
#define __uint_as_float(x) std::bit_cast<float>(static_cast<unsigned>(x))
