#include "sparse/element.h"

#include "sparse/half.h"

namespace riffle::sparse {
namespace {

std::uint32_t bits_of(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
float from_bits(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr std::uint32_t kQuietNan = 0x7fc00000;
constexpr std::uint32_t kLargestBfloat16 = 0x7f7f0000;

std::uint32_t rounded_bits(std::uint32_t bits) {
  return (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000U;
}

}  // namespace

float rounded_to_bfloat16(float x) {
  if (magnitude_of(x) > kNonFiniteMagnitude) return from_bits(kQuietNan);
  const std::uint32_t bits = bits_of(x);
  const std::uint32_t rounded = rounded_bits(bits);
  const bool overflowed = is_finite(x) && (rounded & kMagnitudeMask) >= kNonFiniteMagnitude;
  return from_bits(overflowed ? (bits & ~kMagnitudeMask) | kLargestBfloat16 : rounded);
}

float load(const void* data, Element element, std::size_t index) {
  const char* at = static_cast<const char*>(data) + index * size_of(element);
  if (element == Element::kFloat32) {
    float x;
    std::memcpy(&x, at, sizeof x);
    return x;
  }
  std::uint16_t narrow;
  std::memcpy(&narrow, at, sizeof narrow);
  return element == Element::kFloat16 ? from_half(narrow) : from_bits(std::uint32_t{narrow} << 16);
}

void store(void* data, Element element, std::size_t index, float value) {
  char* at = static_cast<char*>(data) + index * size_of(element);
  if (element == Element::kFloat32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  std::uint16_t narrow = 0;
  if (element == Element::kFloat16) {
    narrow = to_half(value);
  } else {
    const bool is_nan = magnitude_of(value) > kNonFiniteMagnitude;
    narrow = static_cast<std::uint16_t>((is_nan ? kQuietNan : rounded_bits(bits_of(value))) >> 16);
  }
  std::memcpy(at, &narrow, sizeof narrow);
}

}  // namespace riffle::sparse
