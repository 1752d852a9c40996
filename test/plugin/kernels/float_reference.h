// Narrow float formats written down from their definition, with none of the kernels' arithmetic: a
// format is the list of its values, decoding is looking up, rounding is finding the nearest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace riffle::reference {

struct Layout {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // else the largest exponent holds numbers and only all ones is NaN
  bool saturates;
  unsigned canonical_nan;
};
inline constexpr Layout kHalf{5, 10, true, false, 0x7e00};
inline constexpr Layout kBfloat16{8, 7, true, false, 0x7fc0};
inline constexpr Layout kE4m3{4, 3, false, true, 0x7f};
inline constexpr Layout kE5m2{5, 2, true, true, 0x7e};

class Format {
 public:
  explicit Format(const Layout& layout) : layout_(layout) {
    const int width = layout.exponent_bits + layout.mantissa_bits;
    for (unsigned bits = 0; bits < 1U << width; ++bits) {
      magnitudes_.push_back(magnitude(bits));
      if (std::isfinite(magnitudes_.back())) largest_ = bits;
    }
  }

  unsigned sign_bit() const { return 1U << (layout_.exponent_bits + layout_.mantissa_bits); }
  unsigned patterns() const { return 2 * sign_bit(); }
  const Layout& layout() const { return layout_; }

  double decode(unsigned bits) const {
    const double value = magnitudes_[bits & (sign_bit() - 1)];
    return (bits & sign_bit()) != 0 ? -value : value;
  }

  unsigned encode(double value) const {
    if (std::isnan(value)) return layout_.canonical_nan;
    return nearest(std::fabs(value)) | (std::signbit(value) ? sign_bit() : 0);
  }

 private:
  double magnitude(unsigned bits) const {
    const unsigned mantissa = bits & ((1U << layout_.mantissa_bits) - 1);
    const int exponent = static_cast<int>(bits >> layout_.mantissa_bits);
    const int largest_exponent = (1 << layout_.exponent_bits) - 1;
    const int bias = largest_exponent / 2;
    if (exponent == largest_exponent) {
      if (layout_.has_infinity) {
        return mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
      }
      if (mantissa == (1U << layout_.mantissa_bits) - 1) return std::nan("");
    }
    if (exponent == 0) return std::ldexp(mantissa, 1 - bias - layout_.mantissa_bits);
    return std::ldexp(mantissa + (1U << layout_.mantissa_bits),
                      exponent - bias - layout_.mantissa_bits);
  }

  // To the nearest, ties to the even pattern; beyond the largest number by half a step or more is
  // infinity, unless the format saturates.
  unsigned nearest(double value) const {
    const double largest = magnitudes_[largest_];
    if (value >= largest) {
      const double step = largest - magnitudes_[largest_ - 1];
      const bool overflows = value >= largest + step / 2 && !layout_.saturates;
      return overflows ? largest_ + 1 : largest_;
    }
    const auto begin = magnitudes_.begin();
    const auto above = std::upper_bound(begin, begin + largest_ + 1, value);
    const auto low = static_cast<unsigned>(above - begin) - 1;
    const double to_low = value - magnitudes_[low];
    const double to_high = magnitudes_[low + 1] - value;
    if (to_low != to_high) return to_low < to_high ? low : low + 1;
    return low % 2 == 0 ? low : low + 1;
  }

  Layout layout_;
  std::vector<double> magnitudes_;
  unsigned largest_ = 0;
};

}  // namespace riffle::reference
