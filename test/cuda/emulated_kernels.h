// The kernels as plain functions, to be called on the emulator.
#pragma once

#include "sparse/cuda/kernels.h"

namespace riffle::sparse::cuda {

using EmulatedKernel = void (*)(const void* arguments);

// By Kernel.
using EmulatedKernels = std::array<EmulatedKernel, kKernels>;
const EmulatedKernels& emulated_kernels();
// The same source, but __syncthreads() waits for nobody: a mistake that tests have to see.
const EmulatedKernels& kernels_without_barriers();
// The same source, but atomicAdd() is lost where the value before was odd, as if not atomic.
const EmulatedKernels& kernels_that_lose_additions();

}  // namespace riffle::sparse::cuda
