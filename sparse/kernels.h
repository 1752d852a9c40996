// The loops that touch every element, one set per instruction set: the same template
// (kernels_loop.h) compiled with other flags, so that all of them give the same result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sparse/element.h"

namespace riffle::sparse {

struct Kernels {
  // Stores index and value of every element of magnitude >= least (at least 1), in order, and
  // returns how many; stops early once that is more than `capacity`. Both arrays have room for
  // capacity + Entries::kSlack.
  using Collect = std::size_t (*)(const void* data, std::size_t count, std::uint32_t least,
                                  std::uint32_t* indices, float* values, std::size_t capacity);
  // out[i] = gradient[i] + residual[i]; out may be residual.
  using Accumulate = void (*)(const void* gradient, const float* residual, std::size_t count,
                              float* out);
  // Both in one pass: all of out is written, what is collected is of out. Where more than
  // `capacity` are found the arrays are of no use.
  using AccumulateAndCollect = std::size_t (*)(const void* gradient, const float* residual,
                                               std::size_t count, float* out, std::uint32_t least,
                                               std::uint32_t* indices, float* values,
                                               std::size_t capacity);
  Collect collect[kElements];
  Accumulate accumulate[kElements];
  AccumulateAndCollect accumulate_and_collect[kElements];
};

const Kernels* portable_kernels();
// Null where the compiler's target has no such instructions.
const Kernels* avx2_kernels();
const Kernels* avx512_kernels();

}  // namespace riffle::sparse
