// The kernels by name, for what launches them.
#pragma once

#include <array>

#include "sparse/cuda/arguments.h"

namespace riffle::sparse::cuda {

// SelectArguments up to kPick, then ScatterArguments and ReduceArguments.
enum class Kernel { kSample, kMark, kScan, kEmit, kHistogram, kPick, kScatterAdd, kReduce };
inline constexpr int kKernels = 8;
inline constexpr std::array<const char*, kKernels> kKernelNames = {
    "riffle_sample",    "riffle_mark", "riffle_scan",        "riffle_emit",
    "riffle_histogram", "riffle_pick", "riffle_scatter_add", "riffle_reduce"};

}  // namespace riffle::sparse::cuda
