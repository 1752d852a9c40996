// What is right, for sums that are not the exact ones (docs/sparse.md, docs/policies.md).
//
// A window is a row of calls that begins and ends drained: calls with nothing but zeros go before
// it and end it, until nothing more comes out. What a mode kept back is then out, so over the whole
// window, element by element:
//
//   sparse    all results = all gradients: residuals are what is missing in between. In every call
//             all ranks have the same bits.
//   relaxed   all ranks' results together = ranks x all gradients: the mean over the ranks is kept.
//
// Equal means: up to what rounding may do, by the bounds on those pages, each element by its own
// numbers. Pure; C++14, no dependencies.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "riffle_gradients.h"

namespace riffle_tests {

// How far the numbers of a type lie apart: relative to a number, and near zero.
struct Spacing {
  double relative, least;
};
inline Spacing float32_spacing() { return {std::ldexp(1, -23), std::ldexp(1, -149)}; }
inline Spacing float16_spacing() { return {std::ldexp(1, -10), std::ldexp(1, -24)}; }
inline Spacing bfloat16_spacing() { return {std::ldexp(1, -7), std::ldexp(1, -133)}; }

// NaN is never within.
inline bool is_within(double got, double wanted, double allowed) {
  return std::fabs(got - wanted) <= allowed;
}

// Results of one exact call that are further from the sum than adding in any order may bring them.
inline std::size_t wrong_exact(const float* results, const Inputs& in, int ranks, Spacing type) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < in.sum.size(); ++i) {
    const double allowed = ranks * (type.relative * in.weight[i] + type.least);
    wrong += !is_within(results[i], in.sum[i], allowed);
  }
  return wrong;
}

// What one rank got in the calls of a window.
class Window {
 public:
  explicit Window(std::size_t elements) : sum_(elements), weight_(elements) {}

  void add(const float* results) {
    ++calls_;
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      sum_[i] += results[i];
      weight_[i] += std::fabs(results[i]);
    }
  }

  int calls() const { return calls_; }
  std::size_t elements() const { return sum_.size(); }
  const std::vector<double>& sum() const { return sum_; }
  const std::vector<float>& weight() const { return weight_; }  // of the magnitudes

 private:
  std::vector<double> sum_;
  std::vector<float> weight_;
  int calls_ = 0;
};

// Of the elements from `first` on for which `in` says what went in, how many did not come out
// whole.
inline std::size_t wrong_sparse(const Window& window, std::size_t first, const Inputs& in,
                                int ranks, Spacing type) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < in.sum.size(); ++i) {
    const double of_call = 2 * ranks * std::ldexp(1, -24) * in.weight[i] + ranks * type.least;
    const double allowed = window.calls() * of_call + type.relative * window.weight()[first + i];
    wrong += !is_within(window.sum()[first + i], in.sum[i], allowed);
  }
  return wrong;
}

// All ranks' windows together. `before`: what the calls since the mode began, but before the
// window, add to a rank's state at most, per element (Inputs::most).
inline std::size_t wrong_relaxed(const std::vector<double>& sums,
                                 const std::vector<double>& weights, int calls, const Inputs& in,
                                 const std::vector<double>& before, int ranks, Spacing type) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < in.sum.size(); ++i) {
    const double state = before[i] + in.most[i];
    const double of_call = ranks * (std::ldexp(1, -22) * 2 * ranks * state + type.least);
    const double allowed = calls * of_call + type.relative * weights[i];
    wrong += !is_within(sums[i], ranks * in.sum[i], allowed);
  }
  return wrong;
}

// The same bits have the same digest. Positive, so that it travels as any signed number.
inline std::int64_t digest_of(const void* bytes, std::size_t count) {
  std::uint64_t digest = count;
  const char* at = static_cast<const char*>(bytes);
  for (; count > 0; at += 8) {
    const std::size_t step = count < 8 ? count : 8;
    std::uint64_t word = 0;
    std::memcpy(&word, at, step);
    digest = (digest ^ word) * 0x9e3779b97f4a7c15;
    digest ^= digest >> 29;
    count -= step;
  }
  return static_cast<std::int64_t>(digest >> 1);
}

}  // namespace riffle_tests
