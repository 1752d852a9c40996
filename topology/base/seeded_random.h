// SplitMix64 (Steele, Lea, Flood 2014). The standard library's distributions differ between
// implementations, so whatever must come out alike on every machine is drawn from here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace riffle {

class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 .. n - 1; n is far below 2^32.
  std::size_t below(std::size_t n) { return (next() >> 32) * n >> 32; }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace riffle
