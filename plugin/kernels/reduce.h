// Reduction kernels: dst[i] = src[0][i] op src[1][i] op ... op src[n-1][i], in that order.
//
// The order is part of the contract: the same operands in the same order give the same bits on
// every machine and instruction set (vectors run along i, never across operands). float16, bfloat16
// and float8 accumulate in float32 over all n operands and are rounded to nearest even once; so do
// blocks of float8 (float8_block.h), of which there are only sums.
// Integer sums and products wrap. NaN: sum and prod propagate; max and min follow NCCL (NaN wins
// over a number); every NaN result is the format's one quiet NaN. In max and min -0 is less than
// +0. float8 e4m3 saturates to +-448 as NVIDIA's conversion does; e5m2 saturates to +-57344.
//
// dst may be the same address as any one operand; partial overlap is not allowed. No alignment is
// required. Runs in any thread and under any rounding or flushing mode of it, allocates nothing. An
// empty list of operands or an unknown type or operation is a broken invariant (RIFFLE_CHECK).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "plugin/kernels/types.h"
#include "topology/base/isa.h"

namespace riffle {

// The process's instruction set: the best that this machine has, which RIFFLE_ISA's text ("best",
// "portable", "avx2", "avx512") may lower. To be called before the first reduction.
void limit_isa(const std::string& wanted);
Isa best_isa();
bool is_available(Isa isa);

void reduce(void* dst, std::span<const void* const> sources, std::size_t count, DataType type,
            ReduceOp op);
// The same with a chosen instruction set, for tests and benchmarks; `isa` must be available.
void reduce_with(Isa isa, void* dst, std::span<const void* const> sources, std::size_t count,
                 DataType type, ReduceOp op);

}  // namespace riffle
