// What NCCL's GPU kernels do with data, on the CPU: dsts[*] = srcs[0] op srcs[1] op ...
//
// Written so that the compiler vectorises it, because the ring of `riffle bench` runs on it and
// must not be slower than it has to be. Sixteen- and eight-bit floats are computed in float32 and
// rounded once per call. Integers wrap.
#pragma once

#include <cstddef>
#include <span>

#include "plugin/kernels/types.h"

namespace riffle::host {

// NCCL's user-visible operators; the network sees an average as a sum.
enum class Op { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

constexpr ReduceOp network_op(Op op) {
  return op == Op::kAvg ? ReduceOp::kSum : static_cast<ReduceOp>(op);
}

// How an average is made: floats are scaled before the sum, integers divided after it.
struct Averaging {
  double scale_first = 1;  // factor for srcs[0]
  long long divide_result = 1;
};

// dsts may be equal to a source, but may not overlap one otherwise. One source means: copy.
void reduce_copy(std::span<void* const> dsts, std::span<const void* const> srcs, std::size_t count,
                 DataType type, ReduceOp op, const Averaging& averaging = {});

}  // namespace riffle::host
