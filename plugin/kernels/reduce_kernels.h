// The kernels behind reduce.h, one set per instruction set. Every set is the same template
// (reduce_loop.h) compiled with other flags, so that all of them compute the same bits.
#pragma once

#include <cstddef>

#include "plugin/kernels/types.h"

namespace riffle {

// operands >= 1; reads operands * count elements, writes count.
using ReduceKernel = void (*)(void* dst, const void* const* sources, std::size_t operands,
                              std::size_t count);

ReduceKernel portable_kernel(DataType type, ReduceOp op);
// Null where the compiler's target has no such instructions.
ReduceKernel avx2_kernel(DataType type, ReduceOp op);
ReduceKernel avx512_kernel(DataType type, ReduceOp op);
ReduceKernel neon_kernel(DataType type, ReduceOp op);

// Those behind float8_block.h, of whole blocks. Null likewise.
struct BlockKernels {
  void (*pack)(const float* from, std::size_t blocks, char* to) = nullptr;
  void (*unpack)(const char* from, std::size_t blocks, float* to) = nullptr;
};
BlockKernels portable_block_kernels();
BlockKernels avx2_block_kernels();
BlockKernels avx512_block_kernels();
BlockKernels neon_block_kernels();

}  // namespace riffle
