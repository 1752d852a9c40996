#include "plugin/kernels/reduce_kernels.h"

#if defined(__aarch64__)
#include "plugin/kernels/neon.h"
#include "plugin/kernels/reduce_loop.h"

namespace riffle {
ReduceKernel neon_kernel(DataType type, ReduceOp op) { return Kernels<Neon>::find(type, op); }
BlockKernels neon_block_kernels() { return Kernels<Neon>::of_blocks(); }
}  // namespace riffle

#else

namespace riffle {
ReduceKernel neon_kernel(DataType, ReduceOp) { return nullptr; }
BlockKernels neon_block_kernels() { return {}; }
}  // namespace riffle

#endif
