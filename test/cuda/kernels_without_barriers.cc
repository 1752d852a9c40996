#include "test/cuda/device_language.h"

#define __syncthreads() static_cast<void>(0)
#define RIFFLE_COPY without_barriers
#include "test/cuda/emulated_kernels.inc"

namespace riffle::sparse::cuda {
const EmulatedKernels& kernels_without_barriers() {
  return without_barriers::riffle::sparse::cuda::kAll;
}
}  // namespace riffle::sparse::cuda
