// Inputs that selection may stumble over, and how to compare what comes out.
#pragma once

#include <bit>
#include <cmath>
#include <vector>

#include "sparse/element.h"
#include "test/selection_inputs.h"

namespace riffle::sparse::cuda {

inline std::vector<std::uint8_t> stored(const std::vector<float>& values, Element element) {
  std::vector<std::uint8_t> bytes(values.size() * size_of(element));
  for (std::size_t i = 0; i < values.size(); ++i) store(bytes.data(), element, i, values[i]);
  return bytes;
}

// Bit for bit, but every NaN is alike: which one an addition gives is the processor's choice.
inline bool is_same(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

}  // namespace riffle::sparse::cuda
