// All kernels. NVRTC and nvcc compile this file; test/cuda compiles it as plain C++, with what a
// GPU brings along emulated.
#ifndef RIFFLE_KERNEL
#define RIFFLE_KERNEL extern "C" __global__ void __launch_bounds__(256)  // kBlockThreads
#endif

#include "sparse/cuda/select.cuh"
#include "sparse/cuda/sums.cuh"
