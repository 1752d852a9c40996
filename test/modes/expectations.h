// What every call must give that is the same for all nodes, element by element.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace riffle::testing {

using Numbers = std::span<const float>;

// The first element whose bits are not the same in all outputs; empty if there is none.
inline std::string differing_bits(const std::vector<Numbers>& outputs) {
  for (const Numbers& output : outputs) {
    if (std::memcmp(output.data(), outputs[0].data(), output.size_bytes()) == 0) continue;
    for (std::size_t e = 0; e < output.size(); ++e) {
      if (std::memcmp(&output[e], &outputs[0][e], sizeof(float)) != 0) {
        return "other bits at element " + std::to_string(e) + ": " + std::to_string(output[e]) +
               ", on the first node " + std::to_string(outputs[0][e]);
      }
    }
  }
  return "";
}

// The first element that is not `scale` times the exact sum, to `relative` of the magnitudes that
// were added and `absolute`; empty if there is none. What a sum of anything that is not finite
// should be is not looked at.
inline std::string wrong_sum(const Numbers& output, const std::vector<Numbers>& inputs,
                             double scale = 1, double relative = 1e-6, double absolute = 0) {
  for (std::size_t e = 0; e < output.size(); ++e) {
    double sum = 0, magnitude = 0;
    for (const Numbers& input : inputs) {
      sum += static_cast<double>(input[e]);
      magnitude += std::fabs(static_cast<double>(input[e]));
    }
    const auto is = static_cast<double>(output[e]);
    const double allowed = scale * (relative * magnitude + absolute);
    if (std::isfinite(magnitude) && !(std::fabs(is - scale * sum) <= allowed)) {
      return "no exact sum at element " + std::to_string(e) + ": " + std::to_string(is) +
             ", expected " + std::to_string(scale * sum);
    }
  }
  return "";
}

}  // namespace riffle::testing
