// Data that looks like a gradient to a sparse sum: most elements small, some large, no two alike,
// others in every step.
#pragma once

#include <cstddef>
#include <vector>

namespace riffle::bench {

class GradientData {
 public:
  explicit GradientData(int rank);
  // This rank's contribution, another one in every call.
  void fill(float* data, std::size_t count);

 private:
  std::vector<float> tile_;
  std::size_t at_ = 0;
};

}  // namespace riffle::bench
