// A sparse vector: indices, strictly ascending, and the values that stand there, never zero.
//
// The arrays are as long as the most entries seen so far plus kSlack (kernels store whole vectors),
// and `count` says how many are meant, so that a steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace riffle::sparse {

class Entries {
 public:
  static constexpr std::size_t kSlack = 64;

  // Room for `capacity` entries; what was there may be lost.
  void make_room(std::size_t capacity) {
    if (indices_.size() >= capacity + kSlack) return;
    indices_.resize(capacity + kSlack);
    values_.resize(capacity + kSlack);
  }
  void clear() { count_ = 0; }
  void set_count(std::size_t count) { count_ = count; }  // no more than the room made
  void append(std::uint32_t index, float value) {
    if (count_ == indices_.size()) grow();
    indices_[count_] = index;
    values_[count_++] = value;
  }

  std::size_t count() const { return count_; }
  std::span<const std::uint32_t> indices() const { return {indices_.data(), count_}; }
  std::span<const float> values() const { return {values_.data(), count_}; }
  std::span<float> values() { return {values_.data(), count_}; }
  std::uint32_t* raw_indices() { return indices_.data(); }
  float* raw_values() { return values_.data(); }

 private:
  void grow() {
    indices_.resize(indices_.size() * 2 + kSlack);
    values_.resize(indices_.size());
  }
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
  std::size_t count_ = 0;
};

// The sum of two vectors: first[i] + second[i], in that order; what cancels to zero is left out,
// every NaN is the one quiet NaN. Returns how many different indices they had. `sum` is neither of
// them.
std::size_t add(const Entries& first, const Entries& second, Entries& sum);

// The same for two numbers.
inline float plus(float first, float second) {
  const float sum = first + second;
  return sum == sum ? sum : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace riffle::sparse
