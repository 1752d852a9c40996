#include "test/cuda/device_language.h"

#undef atomicAdd
#define atomicAdd add_or_lose
#define __syncthreads ::riffle::emulator::wait_for_block

namespace {
unsigned add_or_lose(unsigned* at, unsigned value) {
  const unsigned before = *at;
  if (before % 2 == 0) *at += value;
  return before;
}
}  // namespace

#define RIFFLE_COPY with_lost_additions
#include "test/cuda/emulated_kernels.inc"

namespace riffle::sparse::cuda {
const EmulatedKernels& kernels_that_lose_additions() {
  return with_lost_additions::riffle::sparse::cuda::kAll;
}
}  // namespace riffle::sparse::cuda
