// What the threads of a block do together. All of them must call.
#pragma once

#include "sparse/cuda/arguments.h"

namespace riffle::sparse::cuda {

constexpr unsigned kAllLanes = 0xffffffff;

__device__ inline unsigned lane() { return threadIdx.x % 32; }
__device__ inline unsigned warp() { return threadIdx.x / 32; }
__device__ inline unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }
__device__ inline Pair sum_of(Pair a, Pair b) { return {a.above + b.above, a.equal + b.equal}; }

// The sum of `mine` over all threads before this one, and over all. `scratch` has kWarps.
__device__ inline Pair sum_before(Pair mine, Pair* scratch, Pair& total) {
  Pair sum = mine;  // over the lanes of this warp up to this one
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned above = __shfl_up_sync(kAllLanes, sum.above, step);
    const unsigned equal = __shfl_up_sync(kAllLanes, sum.equal, step);
    if (lane() >= step) sum = sum_of(sum, {above, equal});
  }
  __syncthreads();  // what the call before left there has been read
  if (lane() == 31) scratch[warp()] = sum;
  __syncthreads();
  Pair before = {sum.above - mine.above, sum.equal - mine.equal};
  total = {0, 0};
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp()) before = sum_of(before, scratch[w]);
    total = sum_of(total, scratch[w]);
  }
  return before;
}

struct BinFound {
  bool is_here;    // in one thread only
  unsigned bin;    // the highest such that it and those above hold `wanted`, 0 if all hold less
  unsigned above;  // what those above hold
};

// `bins` is a multiple of kBlockThreads, `wanted` at least 1.
__device__ inline BinFound find_bin(const unsigned* histogram, unsigned bins, unsigned wanted,
                                    Pair* scratch) {
  const unsigned each = bins / kBlockThreads;
  const unsigned end = bins - threadIdx.x * each;  // the first thread has the highest bins
  unsigned own = 0;
  for (unsigned i = 1; i <= each; ++i) own += histogram[end - i];
  Pair total;
  BinFound found = {false, 0, sum_before({own, 0}, scratch, total).above};
  const bool is_lowest = threadIdx.x == kBlockThreads - 1;
  found.is_here = found.above < wanted && (is_lowest || found.above + own >= wanted);
  if (found.is_here) {
    found.bin = end - 1;
    while (found.bin > 0 && found.above + histogram[found.bin] < wanted) {
      found.above += histogram[found.bin--];
    }
  }
  return found;
}

}  // namespace riffle::sparse::cuda
