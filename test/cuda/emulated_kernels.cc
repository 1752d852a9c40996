#include "test/cuda/emulated_kernels.h"

#include "test/cuda/device_language.h"

#define __syncthreads ::riffle::emulator::wait_for_block
#define RIFFLE_COPY as_they_are
#include "test/cuda/emulated_kernels.inc"

namespace riffle::sparse::cuda {
const EmulatedKernels& emulated_kernels() { return as_they_are::riffle::sparse::cuda::kAll; }
}  // namespace riffle::sparse::cuda
