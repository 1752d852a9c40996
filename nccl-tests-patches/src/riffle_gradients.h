// Gradient-like data for nccl-tests (-y heavy), and what all ranks' data of some steps add up to.
//
// An element's scale is a product of two log-normal numbers, of its layer (64 Ki elements) and of
// its own, the same in every step and on all ranks; times a bell-shaped number of which kCommon of
// the variance is common to the ranks of a step. So few elements hold most of the sum, as in
// gradients, and they are other ones from step to step: with even data a sparse sum would have
// nothing to choose.
//
// Every rank can compute every rank's data, so that a check needs no communication but its own.
// C++14, no dependencies: nccl-tests' compiler reads this file. Pure; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace riffle_tests {

// The value as the type that travels can hold it.
using Rounding = float (*)(float);
inline float as_it_is(float value) { return value; }

class Gradients {
 public:
  Gradients() : scales_(kScales) {
    for (std::size_t i = 0; i < kScales; ++i) scales_[i] = std::exp(bell(mixed(i)));
  }

  // What `rank` has in `step`: elements `first` to `first` + `count`.
  void fill(std::uint64_t step, int rank, std::uint64_t first, std::size_t count, float* out,
            Rounding rounding = as_it_is) const {
    const std::uint64_t common = mixed(2 * step);
    const std::uint64_t own = mixed(common + 1 + static_cast<unsigned>(rank));
    const float of_common = std::sqrt(kCommon), of_own = std::sqrt(1 - kCommon);
    float layer = layer_scale(first);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t element = first + i;
      if (element % kLayer == 0) layer = layer_scale(element);
      const float scale = layer * scales_[mixed(element) % kScales];
      out[i] = rounding(scale * (of_common * bell(mixed(common ^ element << 1)) +
                                 of_own * bell(mixed(own ^ element << 1))));
    }
  }

 private:
  static constexpr std::size_t kScales = 4096;  // distinct ones
  static constexpr std::uint64_t kLayer = 1 << 16;
  static constexpr float kCommon = 0.3F;
  // Small enough for the sums of many float16 gradients, large enough for its smallest numbers.
  static constexpr float kTypical = 1.0F / 64;

  static std::uint64_t mixed(std::uint64_t x) {  // splitmix64
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  // The sum of four uniform numbers: mean 0, variance 1, out of 64 random bits.
  static float bell(std::uint64_t bits) {
    const std::int32_t sum = static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                                       (bits >> 32 & 0xffff) + (bits >> 48)) -
                             131070;
    return static_cast<float>(sum) * (1.7320508F / 65536.0F);
  }

  static float layer_scale(std::uint64_t element) {
    return kTypical * std::exp(0.8F * bell(mixed(~(element / kLayer))));
  }

  std::vector<float> scales_;
};

// What all ranks put in during some steps, element by element.
struct Inputs {
  std::vector<double> sum;     // of all numbers
  std::vector<double> weight;  // of their magnitudes
  std::vector<double> most;    // over the steps, of the largest magnitude of a rank
};

inline Inputs inputs_of(const Gradients& gradients, std::uint64_t first_step, int steps, int ranks,
                        std::uint64_t first, std::size_t count, Rounding rounding = as_it_is) {
  Inputs in{std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
  std::vector<float> numbers(count), largest(count);
  for (int step = 0; step < steps; ++step) {
    std::fill(largest.begin(), largest.end(), 0.0F);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::uint64_t number = first_step + static_cast<std::uint64_t>(step);
      gradients.fill(number, rank, first, count, numbers.data(), rounding);
      for (std::size_t i = 0; i < count; ++i) {
        const float size = std::fabs(numbers[i]);
        in.sum[i] += numbers[i];
        in.weight[i] += size;
        largest[i] = std::max(largest[i], size);
      }
    }
    for (std::size_t i = 0; i < count; ++i) in.most[i] += largest[i];
  }
  return in;
}

}  // namespace riffle_tests
