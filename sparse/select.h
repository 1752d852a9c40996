// Which elements of a gradient are worth sending: the k of largest magnitude.
//
// Both ways give entries with ascending indices, never a zero, and every infinity and NaN even
// beyond k (they must reach all workers, as a dense sum would carry them). The result depends on
// the input alone, not on the instruction set: of equal magnitudes the lower index goes first.
//
// exact    A sample of the input gives a magnitude that somewhat more than k elements reach; one
//          pass collects those, and a histogram of them finds the k-th. Inputs that deceive the
//          sample (many equal magnitudes, few non-zero ones) take three histogram passes instead.
// reuse    One pass with the magnitude that the last call ended with, as Ok-Topk does (Li and
//          Hoefler, "Near-optimal sparse allreduce for distributed deep learning", PPoPP 2022). The
//          count stays within 25 % of k: a pass that misses is put right by the exact way. The pass
//          can be the one that adds gradient and residual.
//
// A Selector owns scratch memory and is used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sparse/element.h"
#include "sparse/entries.h"
#include "sparse/isa.h"

namespace riffle::sparse {

struct Kernels;

// What the reuse of one selection's threshold for the next needs; one per stretch of elements that
// is selected from again and again.
struct Threshold {
  std::uint32_t magnitude = 0;  // 0: none yet
  std::uint64_t exact_calls = 0;
  std::uint64_t reused_calls = 0;
};

// The counts that reuse accepts for a wish of k, both included; they always include k.
std::size_t least_accepted(std::size_t k);
std::size_t most_accepted(std::size_t k);

class Selector {
 public:
  explicit Selector(Isa isa = best_isa());

  // min(k, non-zero elements) entries, or as many as are not finite if those are more. `count` is
  // at most 2^32 - 1; `data` needs no alignment and is only read.
  void top_k(const void* data, Element element, std::size_t count, std::size_t k, Entries& out);

  // As top_k, but between least_accepted(k) and most_accepted(k) of them.
  void near_top_k(const void* data, Element element, std::size_t count, std::size_t k,
                  Threshold& threshold, Entries& out);

  // near_top_k() where `candidates` are all entries that reach the threshold: false, and nothing is
  // changed, where those are fewer than it accepts or k is 0.
  bool near_top_k_of(std::size_t k, Threshold& threshold, Entries& candidates);

  // All entries of magnitude `least` (element.h) and more.
  void at_least(const void* data, Element element, std::size_t count, std::uint32_t least,
                Entries& out) const;

  // The same for what is sparse already: keeps the top k of `entries` and appends what it drops to
  // `dropped`, both ascending.
  void keep_top_k(Entries& entries, std::size_t k, Entries& dropped);

  // out[i] = gradient[i] + residual[i] in float32.
  void accumulate(const void* gradient, Element element, const float* residual, std::size_t count,
                  float* out) const;

  // The same, and in the same pass all entries of `out` of magnitude `least` and more: false if
  // those are more than `most`, then `found` has none.
  bool accumulate_and_collect(const void* gradient, Element element, const float* residual,
                              std::size_t count, float* out, std::uint32_t least, std::size_t most,
                              Entries& found) const;

 private:
  struct Cut {  // what to keep: magnitudes above, and the first `ties` that are equal
    std::uint32_t magnitude;
    std::size_t ties;
  };
  std::uint32_t sampled_magnitude(const void* data, Element element, std::size_t count,
                                  std::size_t k);
  void take_exactly(const void* data, Element element, std::size_t count, std::size_t k,
                    Threshold& threshold, Entries& out);
  Cut cut_of(const Entries& candidates, std::size_t k);
  Cut cut_by_histograms(const void* data, Element element, std::size_t count, std::size_t k);
  static void apply(Cut cut, Entries& candidates);

  const Kernels& kernels_;
  std::vector<std::uint32_t> histogram_;
  std::vector<std::uint32_t> bin_;
};

}  // namespace riffle::sparse
