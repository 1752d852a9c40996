// Element types of gradients, and the one order in which their magnitudes are compared.
//
// A magnitude is the pattern of |x| as float32, read as an integer: it grows with |x|, infinities
// lie above every number and NaNs above infinities. Every float16 and bfloat16 is a float32, so all
// three types share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace riffle::sparse {

enum class Element : std::uint8_t { kFloat32 = 0, kFloat16 = 1, kBfloat16 = 2 };
inline constexpr int kElements = 3;

constexpr std::size_t size_of(Element e) { return e == Element::kFloat32 ? 4 : 2; }

inline constexpr std::uint32_t kMagnitudeMask = 0x7fffffff;
inline constexpr std::uint32_t kLeastMagnitude = 1;               // of what is not zero
inline constexpr std::uint32_t kNonFiniteMagnitude = 0x7f800000;  // this and above: no number

inline std::uint32_t magnitude_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & kMagnitudeMask;
}
inline bool is_finite(float x) { return magnitude_of(x) < kNonFiniteMagnitude; }

// The inverse of magnitude_of on what is not negative.
inline float from_magnitude(std::uint32_t magnitude) {
  float x;
  std::memcpy(&x, &magnitude, sizeof x);
  return x;
}

// The nearest bfloat16 as a float32, ties to even; numbers too large for it become the largest one,
// infinities stay, every NaN becomes the one quiet NaN.
float rounded_to_bfloat16(float x);

// One element as float32, exactly; `data` needs no alignment.
float load(const void* data, Element element, std::size_t index);
// Rounded to nearest, ties to even, beyond the largest number to infinity: as a dense sum is
// stored.
void store(void* data, Element element, std::size_t index, float value);

}  // namespace riffle::sparse
