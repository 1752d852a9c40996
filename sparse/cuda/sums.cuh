// Sums: entries into a dense vector, and dense vectors with one another. Any number of blocks.
// Every element is one thread's, so the order of additions is the order of calls and of inputs.
#pragma once

#include "sparse/cuda/numbers.cuh"

namespace riffle::sparse::cuda {

RIFFLE_KERNEL riffle_scatter_add(ScatterArguments a) {
  const unsigned stride = gridDim.x * kBlockThreads;
  for (unsigned i = blockIdx.x * kBlockThreads + threadIdx.x; i < a.count; i += stride) {
    const unsigned index = a.has_short_indices != 0
                               ? static_cast<const unsigned short*>(a.indices)[i]
                               : static_cast<const unsigned*>(a.indices)[i];
    a.dense[index] = plus_canonical(a.dense[index], a.values[i]);
  }
}

RIFFLE_KERNEL riffle_reduce(ReduceArguments a) {
  const unsigned stride = gridDim.x * kBlockThreads;
  const unsigned begin = blockIdx.x * kBlockThreads + threadIdx.x;
  with_format(a.element, [&](auto format) {
    using In = decltype(format);
    with_format(a.out_element, [&](auto out_format) {
      using Out = decltype(out_format);
      for (unsigned i = begin; i < a.count; i += stride) {
        float sum = In::wide(static_cast<const typename In::Stored*>(a.inputs[0])[i]);
        for (unsigned j = 1; j < a.number; ++j) {
          const auto* input = static_cast<const typename In::Stored*>(a.inputs[j]);
          sum = plus_canonical(sum, In::wide(input[i]));
        }
        static_cast<typename Out::Stored*>(a.out)[i] = Out::narrow(sum);
      }
    });
  });
}

}  // namespace riffle::sparse::cuda
