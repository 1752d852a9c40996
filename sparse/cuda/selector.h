// Selection on a device: what sparse::Selector::top_k gives, the same entries in the same order.
//
//   Selector selector(device);
//   selector.top_k(input, k, output);       // only enqueues
//   Result<std::size_t> count = selector.finish();
//
// top_k reads the input once, unless the sample that it begins with misleads (many equal
// magnitudes, few non-zero ones): then five times. at_least reads it once. Values are equal to the
// processor's bit for bit, except that a NaN may be another NaN.
//
// One thread at a time; one selection at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sparse/cuda/device.h"
#include "sparse/element.h"

namespace riffle::sparse::cuda {

// All on the device. With a residual it is gradient[i] + residual[i] that is selected from; that is
// also stored in sum[i], and zero where an entry was taken: what is left for the next call. `sum`
// may be `residual`, and must be given with it.
struct Input {
  const void* gradient = nullptr;  // aligned to its type
  Element element = Element::kFloat32;
  std::size_t count = 0;  // at most kMostElements
  const float* residual = nullptr;
  float* sum = nullptr;
};
inline constexpr std::size_t kMostElements = std::size_t{1} << 31;

// Where the entries go, on the device: `indices` are ascending, of 2 bytes each if
// has_short_indices (inputs of up to 65536 elements), else of 4.
struct Output {
  void* indices = nullptr;
  float* values = nullptr;
  std::size_t capacity = 0;  // entries; min(k, count) are enough if all elements are finite
  bool has_short_indices = false;
};

class Selector {
 public:
  explicit Selector(Device& device);

  // The k elements of largest magnitude, of equal ones those of lower index; never a zero, and
  // every infinity and NaN even beyond k.
  Status top_k(const Input& input, std::size_t k, const Output& output);
  // All elements of at least that magnitude, which is above 0 (element.h).
  Status at_least(const Input& input, std::uint32_t magnitude, const Output& output);
  // Waits for the selection; how many entries it gave. An error if the output has not room for
  // them: then none was stored, nothing was taken out of the sum, and the message says how many
  // they are.
  Result<std::size_t> finish();

 private:
  Status prepare(const Input& input, const Output& output, std::size_t candidates);
  Status launch(Kernel kernel, unsigned blocks);
  Status mark_scan_emit();

  Device& device_;
  Buffer state_, mask_, tiles_, histogram_, candidate_indices_, candidate_values_;
  SelectArguments arguments_{};
  bool is_under_way_ = false;
};

}  // namespace riffle::sparse::cuda
