// Inputs that the selection of sparse gradients may stumble over.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace riffle::sparse {

struct Numbers {
  const char* name;
  std::function<float(std::mt19937&, std::size_t)> at;
};

inline std::vector<Numbers> kinds_of_numbers() {
  const auto normal = [](std::mt19937& r) { return std::normal_distribution<float>()(r); };
  static constexpr float kInf = std::numeric_limits<float>::infinity();
  return {
      {"normal", [=](auto& r, auto) { return normal(r); }},
      {"heavy tail", [=](auto& r, auto) { return std::pow(normal(r), 5.0F) * 1e-3F; }},
      {"all equal", [](auto&, auto) { return -0.25F; }},
      {"few values", [](auto& r, auto) { return static_cast<float>(r() % 5) - 2; }},
      {"mostly zero", [=](auto& r, auto) { return r() % 50 == 0 ? normal(r) : 0.0F; }},
      {"all zero", [](auto& r, auto) { return r() % 2 == 0 ? 0.0F : -0.0F; }},
      {"one hot stretch",
       [=](auto& r, auto i) { return normal(r) * (i / 300 % 30 == 7 ? 1e6F : 1e-6F); }},
      {"ascending", [](auto&, auto i) { return static_cast<float>(i); }},
      {"subnormal", [](auto& r, auto) { return 1e-45F * static_cast<float>(r() % 1000); }},
      {"some infinite",
       [=](auto& r, auto i) {
         return i % 97 == 5 ? -kInf : i % 131 == 7 ? std::nanf("") : normal(r);
       }},
      {"all infinite", [](auto&, auto) { return kInf; }},
      {"any bits", [](auto& r, auto) { return std::bit_cast<float>(std::uint32_t(r())); }},
  };
}

}  // namespace riffle::sparse
