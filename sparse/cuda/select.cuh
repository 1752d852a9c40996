// Selection, the same entries in the same order as sparse/select.h, as a row of kernels on one
// stream (selector.cc has the order):
//
//   sample     a magnitude that somewhat more than k elements reach
//   mark       one pass over the input, the only one if the sample was good: adds the residual,
//              leaves a bit for every element that reaches the magnitude, and counts per tile
//   scan       counts of tiles to places
//   emit       marked elements, in order: candidates
//   histogram, pick   three times: the k-th magnitude, digit by digit, among the candidates
//   mark, scan, emit  once more with the exact cut, from candidates to the result
//
// If the candidates are fewer than k or more than there is room for, everything after the first
// `scan` looks at all elements instead. Only integers are added atomically, so the order in which
// threads come does not show. No block waits for another.
#pragma once

#include "sparse/cuda/block.cuh"
#include "sparse/cuda/numbers.cuh"

namespace riffle::sparse::cuda {

constexpr unsigned kSampleBits = 12;  // exponent and four bits of mantissa: steps of 6 %
constexpr unsigned kSampleBins = 1U << kSampleBits;
constexpr unsigned kAhead = 8;  // elements that a thread loads before it looks at the first

// Values by index; keep() stores one that is a sum.
template <class Format>
struct Plain {
  const typename Format::Stored* from;
  __device__ float look(unsigned i) const { return Format::wide(from[i]); }
  __device__ void keep(unsigned, float) const {}
};
template <class Format>
struct WithResidual {
  const typename Format::Stored* from;
  const float* residual;
  float* sum;
  __device__ float look(unsigned i) const { return Format::wide(from[i]) + residual[i]; }
  __device__ void keep(unsigned i, float value) const { sum[i] = value; }
};

__device__ inline bool is_from_candidates(const SelectArguments& a) {
  return a.from_chosen != 0 && a.state->is_full == 0;
}
__device__ inline unsigned source_count(const SelectArguments& a) {
  return is_from_candidates(a) ? a.state->found : a.count;
}

// use(values) with the input before the residual has been added to it.
template <class Use>
__device__ void with_input(const SelectArguments& a, const Use& use) {
  with_format(a.element, [&](auto format) {
    using Format = decltype(format);
    const auto* from = static_cast<const typename Format::Stored*>(a.gradient);
    if (a.residual != nullptr) {
      use(WithResidual<Format>{from, a.residual, a.sum});
    } else {
      use(Plain<Format>{from});
    }
  });
}

// use(values) with what is looked at after the first mark.
template <class Use>
__device__ void with_source(const SelectArguments& a, const Use& use) {
  if (is_from_candidates(a)) {
    use(Plain<Float32>{a.candidate_values});
  } else if (a.residual != nullptr) {
    use(Plain<Float32>{a.sum});
  } else {
    with_input(a, use);
  }
}

// One block.
RIFFLE_KERNEL riffle_sample(SelectArguments a) {
  __shared__ unsigned bins[kSampleBins];
  __shared__ Pair scratch[kWarps];
  for (unsigned i = threadIdx.x; i < kBins; i += kBlockThreads) a.histogram[i] = 0;
  for (unsigned i = threadIdx.x; i < kSampleBins; i += kBlockThreads) bins[i] = 0;
  if (threadIdx.x == 0) *a.state = {a.least > 0 ? a.least : 1, kAllTies, 0, a.k, 0, 0, 0};
  if (a.lines == 0) return;
  __syncthreads();
  with_input(a, [&](auto values) {
    for (unsigned i = threadIdx.x; i < a.lines * kLine; i += kBlockThreads) {
      // Spread evenly but for a pseudo-random shift, so that no period of the data falls in step.
      const unsigned line = i / kLine;
      const unsigned shift = (line * 0x9e3779b1U >> 8) % (a.stride - kLine + 1);
      const float value = values.look(line * a.stride + shift + i % kLine);
      atomicAdd(&bins[magnitude_bits(value) >> (31 - kSampleBits)], 1U);
    }
  });
  __syncthreads();
  const BinFound found = find_bin(bins, kSampleBins, a.rank, scratch);
  if (!found.is_here) return;
  const unsigned magnitude = found.bin << (31 - kSampleBits);
  // Never so high that an infinity would be missed.
  a.state->magnitude = magnitude < 1 ? 1 : smaller(magnitude, kInfinity);
}

template <class Values>
__device__ void mark_tile(const SelectArguments& a, const Values& values, unsigned count,
                          Pair* scratch) {
  const unsigned begin = blockIdx.x * kTile + warp() * (kTile / kWarps);
  const unsigned least = a.state->magnitude;
  const bool is_whole = begin + kTile / kWarps <= count;
  unsigned own = 0;  // the bits of 32 elements side by side
  Pair counts = {0, 0};
  for (unsigned word = 0; word < 32; word += kAhead) {
    const unsigned first = begin + word * 32 + lane();
    float value[kAhead];
    if (is_whole) {  // all loads before any store, so that none waits for another
#pragma unroll
      for (unsigned j = 0; j < kAhead; ++j) value[j] = values.look(first + j * 32);
#pragma unroll
      for (unsigned j = 0; j < kAhead; ++j) values.keep(first + j * 32, value[j]);
    } else {
      for (unsigned j = 0; j < kAhead; ++j) {
        const unsigned i = first + j * 32;
        value[j] = i < count ? values.look(i) : 0;
        if (i < count) values.keep(i, value[j]);
      }
    }
#pragma unroll
    for (unsigned j = 0; j < kAhead; ++j) {
      const unsigned magnitude = magnitude_bits(value[j]);
      const unsigned marked = __ballot_sync(kAllLanes, magnitude >= least);
      if (lane() == word + j) own = marked;
      counts.above += magnitude > least ? 1 : 0;
      counts.equal += magnitude == least ? 1 : 0;
    }
  }
  a.mask[blockIdx.x * kBlockThreads + threadIdx.x] = own;
  Pair total;
  sum_before(counts, scratch, total);
  if (threadIdx.x == 0) a.tiles[blockIdx.x] = total;
}

// One block per tile of the input.
RIFFLE_KERNEL riffle_mark(SelectArguments a) {
  __shared__ Pair scratch[kWarps];
  const unsigned count = source_count(a);
  if (blockIdx.x * kTile >= count) return;
  const auto mark = [&](auto values) { mark_tile(a, values, count, scratch); };
  if (a.from_chosen != 0) {
    with_source(a, mark);
  } else {
    with_input(a, mark);
  }
}

// One block.
RIFFLE_KERNEL riffle_scan(SelectArguments a) {
  __shared__ Pair scratch[kWarps];
  constexpr unsigned kEach = 4;
  const unsigned tiles = (source_count(a) + kTile - 1) / kTile;
  Pair before = {0, 0};
  for (unsigned base = 0; base < tiles; base += kBlockThreads * kEach) {
    const unsigned first = base + threadIdx.x * kEach;
    Pair counts[kEach];
    Pair own = {0, 0};
#pragma unroll
    for (unsigned j = 0; j < kEach; ++j) {
      counts[j] = first + j < tiles ? a.tiles[first + j] : Pair{0, 0};
      own = sum_of(own, counts[j]);
    }
    Pair total;
    Pair at = sum_of(before, sum_before(own, scratch, total));
#pragma unroll
    for (unsigned j = 0; j < kEach; ++j) {
      if (first + j < tiles) a.tiles[first + j] = at;
      at = sum_of(at, counts[j]);
    }
    before = sum_of(before, total);
  }
  if (threadIdx.x != 0) return;
  SelectState& state = *a.state;
  if (a.to_result != 0) {
    state.kept = before.above + smaller(before.equal, state.ties);
    return;
  }
  state.found = before.above + before.equal;
  const bool are_all = state.magnitude == 1;  // which is below every magnitude but zero's
  state.is_full = state.found > a.candidate_capacity || (state.found < a.k && !are_all) ? 1 : 0;
}

__device__ inline void put_entry(const SelectArguments& a, unsigned at, unsigned i, float value) {
  if (a.to_result == 0) {
    a.candidate_indices[at] = i;
    a.candidate_values[at] = value;
    return;
  }
  const unsigned index = is_from_candidates(a) ? a.candidate_indices[i] : i;
  if (a.has_short_indices != 0) {
    static_cast<unsigned short*>(a.indices)[at] = static_cast<unsigned short>(index);
  } else {
    static_cast<unsigned*>(a.indices)[at] = index;
  }
  a.values[at] = value;
  if (a.residual != nullptr) a.sum[index] = 0;
}

// One block per tile of the input.
RIFFLE_KERNEL riffle_emit(SelectArguments a) {
  __shared__ Pair scratch[kWarps];
  const SelectState& state = *a.state;
  if (a.to_result != 0 ? state.kept > a.capacity : state.is_full != 0) return;
  if (blockIdx.x * kTile >= source_count(a)) return;
  const unsigned marked = a.mask[blockIdx.x * kBlockThreads + threadIdx.x];
  const unsigned begin = blockIdx.x * kTile + threadIdx.x * 32;
  const unsigned cut = state.magnitude;
  const unsigned ties = state.ties;
  with_source(a, [&](auto values) {
    Pair own = {0, 0};
    for (unsigned bits = marked; bits != 0; bits &= bits - 1) {
      const unsigned i = begin + __ffs(static_cast<int>(bits)) - 1;
      const bool is_above = magnitude_bits(values.look(i)) > cut;
      own = sum_of(own, is_above ? Pair{1, 0} : Pair{0, 1});
    }
    Pair total;
    Pair at = sum_of(a.tiles[blockIdx.x], sum_before(own, scratch, total));
    for (unsigned bits = marked; bits != 0; bits &= bits - 1) {
      const unsigned i = begin + __ffs(static_cast<int>(bits)) - 1;
      const float value = values.look(i);
      const bool is_above = magnitude_bits(value) > cut;
      if (is_above || at.equal < ties) put_entry(a, at.above + smaller(at.equal, ties), i, value);
      at = sum_of(at, is_above ? Pair{1, 0} : Pair{0, 1});
    }
  });
}

// The digit of step s is (magnitude >> shift_of(s)) & (bins_of(s) - 1).
__device__ inline unsigned shift_of(unsigned step) { return 20 - 10 * step; }
__device__ inline unsigned bins_of(unsigned step) { return step == 0 ? 2048 : 1024; }

// Any number of blocks. Zeros may be counted: the lowest bin is chosen only if all else is too few.
RIFFLE_KERNEL riffle_histogram(SelectArguments a) {
  __shared__ unsigned bins[kBins];
  const unsigned count = source_count(a);
  const unsigned prefix = a.state->prefix;
  const unsigned shift = shift_of(a.step);
  const unsigned last = bins_of(a.step) - 1;
  const unsigned above = shift + (a.step == 0 ? 11 : 10);  // where the digits known begin
  const unsigned stride = gridDim.x * kBlockThreads;
  if (blockIdx.x * kBlockThreads >= count) return;
  for (unsigned i = threadIdx.x; i < kBins; i += kBlockThreads) bins[i] = 0;
  __syncthreads();
  with_source(a, [&](auto values) {
    for (unsigned i = blockIdx.x * kBlockThreads + threadIdx.x; i < count; i += kAhead * stride) {
      float value[kAhead];
#pragma unroll
      for (unsigned j = 0; j < kAhead; ++j) {
        value[j] = i + j * stride < count ? values.look(i + j * stride) : 0;
      }
#pragma unroll
      for (unsigned j = 0; j < kAhead; ++j) {
        const unsigned magnitude = magnitude_bits(value[j]);
        if (magnitude >> above == prefix >> above) {
          atomicAdd(&bins[(magnitude >> shift) & last], 1U);
        }
      }
    }
  });
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kBins; i += kBlockThreads) {
    if (bins[i] != 0) atomicAdd(&a.histogram[i], bins[i]);
  }
}

// One block: the next digit, after the last one the cut. Leaves the histogram zero.
RIFFLE_KERNEL riffle_pick(SelectArguments a) {
  __shared__ Pair scratch[kWarps];
  SelectState& state = *a.state;
  const unsigned wanted = state.wanted;
  const BinFound found = find_bin(a.histogram, bins_of(a.step), wanted, scratch);
  if (found.is_here) {
    state.prefix |= found.bin << shift_of(a.step);
    state.wanted = wanted - found.above;
    if (a.step == kSteps - 1) {
      const unsigned cut = state.prefix;
      const bool are_ties_counted = cut >= 1 && cut < kInfinity;  // all infinities, never a zero
      state.magnitude = cut < 1 ? 1 : smaller(cut, kInfinity);
      state.ties = are_ties_counted ? state.wanted : kAllTies;
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kBins; i += kBlockThreads) a.histogram[i] = 0;
}

}  // namespace riffle::sparse::cuda
