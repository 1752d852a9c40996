// A half-open range of elements, counted from a chunk's start.
#pragma once

#include <algorithm>
#include <cstdint>

namespace riffle {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool is_empty() const { return begin >= end; }
};
inline Range intersect(Range a, Range b) {
  const std::uint64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

}  // namespace riffle
