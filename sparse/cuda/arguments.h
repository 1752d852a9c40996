// What the kernels are given, and what they know of a selection while it runs: read by the host's
// compiler and by NVRTC, so of built-in types only. Each kernel takes one of the *Arguments by
// value. Pointers are to device memory.
#pragma once

namespace riffle::sparse::cuda {

inline constexpr unsigned kBlockThreads = 256;  // of every kernel
inline constexpr unsigned kWarps = kBlockThreads / 32;
inline constexpr unsigned kTile = kBlockThreads * 32;  // elements that one block marks: 32 a thread
inline constexpr unsigned kBins = 2048;                // of a histogram in device memory
inline constexpr unsigned kSteps = 3;  // histograms that find a magnitude: 11, 10 and 10 bits
inline constexpr unsigned kAllTies = 0xffffffff;
inline constexpr unsigned kLine = 16;  // elements of the sample that lie side by side
inline constexpr unsigned kMostInputs = 16;

// Counts of elements whose magnitude is above the one looked for, and equal to it.
struct Pair {
  unsigned above, equal;
};

// One per selection, in device memory: no kernel waits for the host.
struct SelectState {
  unsigned magnitude;  // the cut: keep what is above this ...
  unsigned ties;       // ... and the first so many that are equal
  unsigned prefix;     // the cut's leading digits, as far as known
  unsigned wanted;     // so many of the elements that begin with prefix
  unsigned found;      // candidates
  unsigned is_full;    // 1: the sample misled, look at all elements instead of candidates
  unsigned kept;       // entries of the result
};

struct SelectArguments {
  // The input. With a residual what counts is gradient[i] + residual[i], and that is also stored in
  // sum[i] (which may be residual); elements that become entries are then zero there.
  const void* gradient;
  const float* residual;  // or null
  float* sum;             // null without a residual
  unsigned element;       // sparse::Element
  unsigned count;         // at most 2^31

  // What is wanted: entries of at least this magnitude, or (0) the k of largest magnitude, for
  // which a sample of so many lines, one every `stride` elements, shows what its rank-th reaches.
  unsigned least;
  unsigned k;
  unsigned lines, stride, rank;

  // Which part of the work: from the input, or from what the first look has left (candidates, or
  // all elements if they were too many or too few); to candidates or to the result.
  unsigned from_chosen;
  unsigned to_result;
  unsigned step;

  // Scratch.
  SelectState* state;
  unsigned* mask;       // one bit per element
  Pair* tiles;          // one per tile: its counts, then those of all tiles before it
  unsigned* histogram;  // kBins; zero between uses
  unsigned* candidate_indices;
  float* candidate_values;
  unsigned candidate_capacity;

  // The result: room for so many entries; if there are more, none is stored.
  void* indices;
  float* values;
  unsigned capacity;
  unsigned has_short_indices;  // 2 bytes each instead of 4
};

// dense[index] = dense[index] + value; indices differ from one another.
struct ScatterArguments {
  float* dense;
  const void* indices;
  const float* values;
  unsigned count;
  unsigned has_short_indices;
};

// out[i] = inputs[0][i] + inputs[1][i] + ..., in this order, in float32.
struct ReduceArguments {
  const void* inputs[kMostInputs];
  void* out;  // may be one of them if the types are alike
  unsigned number;
  unsigned element;
  unsigned out_element;
  unsigned count;  // at most 2^31
};

}  // namespace riffle::sparse::cuda
