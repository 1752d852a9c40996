#include "plugin/kernels/rescale.h"

#include <cstdint>
#include <cstring>

#include "plugin/kernels/float8_block.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/kernels/float_formats.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

struct PortableRescale {
  static constexpr std::size_t kBytes = 16;
};
constexpr std::size_t kLanes = PortableRescale::kBytes / sizeof(float);

// Values may lie at any address.
template <class T>
void rescale_wide(void* values, std::size_t count, T factor) {
  auto* at = static_cast<char*>(values);
  for (std::size_t i = 0; i < count; ++i, at += sizeof(T)) {
    T value;
    std::memcpy(&value, at, sizeof value);
    value *= factor;
    std::memcpy(at, &value, sizeof value);
  }
}

struct Bfloat16Rescale {
  using Ints = Vector<std::int32_t, PortableRescale::kBytes>;
  using Floats = Vector<float, PortableRescale::kBytes>;
  static Floats decode(Ints bits) { return (Floats)(bits << 16); }
  static Ints encode(Floats value) {
    const Ints bits = (Ints)value;
    const Ints is_nan = (bits & 0x7fffffff) > 0x7f800000;
    const Ints rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (is_nan ? (Ints{} + 0x7fc0) : rounded) & 0xffff;
  }
};

template <class Format, class Stored>
void rescale_narrow(void* values, std::size_t count, float factor) {
  using Ints = Vector<std::int32_t, PortableRescale::kBytes>;
  auto* at = static_cast<char*>(values);
  for (std::size_t i = 0; i < count; i += kLanes, at += kLanes * sizeof(Stored)) {
    const std::size_t n = count - i < kLanes ? count - i : kLanes;
    Stored stored[kLanes] = {};
    std::memcpy(stored, at, n * sizeof(Stored));
    Ints bits{};
    for (std::size_t k = 0; k < kLanes; ++k) bits[k] = stored[k];
    bits = Format::encode(Format::decode(bits) * factor);
    for (std::size_t k = 0; k < kLanes; ++k) stored[k] = static_cast<Stored>(bits[k]);
    std::memcpy(at, stored, n * sizeof(Stored));
  }
}

void rescale_blocks(void* blocks, std::size_t count, float factor) {
  auto* at = static_cast<std::byte*>(blocks);
  for (std::size_t b = 0; b < count; ++b, at += kFloat8BlockBytes) {
    float numbers[kFloat8BlockElements];
    unpack_float8(at, kFloat8BlockElements, numbers);
    for (float& x : numbers) x *= factor;
    pack_float8(numbers, kFloat8BlockElements, at);
  }
}

}  // namespace

bool is_floating(DataType type) {
  switch (type) {
    case DataType::kFloat16:
    case DataType::kFloat32:
    case DataType::kFloat64:
    case DataType::kBfloat16:
    case DataType::kFloat8E4m3:
    case DataType::kFloat8E5m2:
    case DataType::kFloat8Block:
      return true;
    default:
      return false;
  }
}

void rescale(void* values, std::size_t count, DataType type, double factor) {
  const DefaultFloatEnvironment environment;
  const auto single = static_cast<float>(factor);
  switch (type) {
    case DataType::kFloat32:
      return rescale_wide<float>(values, count, single);
    case DataType::kFloat64:
      return rescale_wide<double>(values, count, factor);
    case DataType::kFloat16:
      return rescale_narrow<NarrowFloat<PortableRescale, HalfLayout>, std::uint16_t>(values, count,
                                                                                     single);
    case DataType::kBfloat16:
      return rescale_narrow<Bfloat16Rescale, std::uint16_t>(values, count, single);
    case DataType::kFloat8E4m3:
      return rescale_narrow<NarrowFloat<PortableRescale, E4m3Layout>, std::uint8_t>(values, count,
                                                                                    single);
    case DataType::kFloat8E5m2:
      return rescale_narrow<NarrowFloat<PortableRescale, E5m2Layout>, std::uint8_t>(values, count,
                                                                                    single);
    case DataType::kFloat8Block:
      return rescale_blocks(values, count, single);
    default:
      RIFFLE_CHECK(false, "only floating-point sums are rescaled");
  }
}

}  // namespace riffle
