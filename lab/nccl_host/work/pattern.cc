#include "lab/nccl_host/work/pattern.h"

#include <algorithm>
#include <cstring>

#include "lab/nccl_host/work/small_floats.h"

namespace riffle::host {
namespace {

// 0 .. 3: sums over 16 ranks are exact in every type but float8.
int value(std::size_t i, int rank, unsigned salt) {
  std::uint64_t x =
      i * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9u + salt;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebu;
  return static_cast<int>(x >> 62);
}

double load(const void* data, std::size_t i, DataType type) {
  auto at = [&]<class T>(T) {
    T x;
    std::memcpy(&x, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
    return x;
  };
  switch (type) {
    case DataType::kInt8:
      return at(std::int8_t{});
    case DataType::kUint8:
      return at(std::uint8_t{});
    case DataType::kInt32:
      return at(std::int32_t{});
    case DataType::kUint32:
      return at(std::uint32_t{});
    case DataType::kInt64:
      return static_cast<double>(at(std::int64_t{}));
    case DataType::kUint64:
      return static_cast<double>(at(std::uint64_t{}));
    case DataType::kFloat16:
      return to_float(at(Half{}));
    case DataType::kFloat32:
      return at(float{});
    case DataType::kFloat64:
      return at(double{});
    case DataType::kBfloat16:
      return to_float(at(Bfloat16{}));
    case DataType::kFloat8E4m3:
      return to_float(at(Float8E4m3{}));
    case DataType::kFloat8E5m2:
      return to_float(at(Float8E5m2{}));
    case DataType::kFloat8Block:  // no type of NCCL's
      break;
  }
  return 0;
}

void store(void* data, std::size_t i, DataType type, int v) {
  auto put = [&]<class T>(T x) {
    std::memcpy(static_cast<std::byte*>(data) + i * sizeof(T), &x, sizeof(T));
  };
  const auto f = static_cast<float>(v);
  switch (type) {
    case DataType::kInt8:
      return put(static_cast<std::int8_t>(v));
    case DataType::kUint8:
      return put(static_cast<std::uint8_t>(v));
    case DataType::kInt32:
      return put(static_cast<std::int32_t>(v));
    case DataType::kUint32:
      return put(static_cast<std::uint32_t>(v));
    case DataType::kInt64:
      return put(static_cast<std::int64_t>(v));
    case DataType::kUint64:
      return put(static_cast<std::uint64_t>(v));
    case DataType::kFloat16:
      return put(to_half(f));
    case DataType::kFloat32:
      return put(f);
    case DataType::kFloat64:
      return put(static_cast<double>(v));
    case DataType::kBfloat16:
      return put(to_bfloat16(f));
    case DataType::kFloat8E4m3:
      return put(to_e4m3(f));
    case DataType::kFloat8E5m2:
      return put(to_e5m2(f));
    case DataType::kFloat8Block:
      break;
  }
}

double reduced(std::size_t i, Op op, int ranks, unsigned salt) {
  double acc = value(i, 0, salt);
  for (int r = 1; r < ranks; ++r) {
    const double v = value(i, r, salt);
    if (op == Op::kProd)
      acc *= v;
    else if (op == Op::kMax)
      acc = std::max(acc, v);
    else if (op == Op::kMin)
      acc = std::min(acc, v);
    else
      acc += v;
  }
  return op == Op::kAvg ? acc / ranks : acc;
}

// Averages and wide sums of types with few bits are rounded; everything else is exact.
bool near(double got, double want, DataType type, Op op) {
  if (got == want) return true;
  const bool integer = type <= DataType::kUint64;
  if (integer) return op == Op::kAvg && got == static_cast<double>(static_cast<long long>(want));
  const double unit = type == DataType::kFloat8E4m3   ? 0x1p-3
                      : type == DataType::kFloat8E5m2 ? 0x1p-2
                      : type == DataType::kBfloat16   ? 0x1p-6
                      : type == DataType::kFloat16    ? 0x1p-9
                                                      : 0x1p-20;
  const bool rounds = op == Op::kAvg || type >= DataType::kFloat8E4m3;
  return rounds && std::abs(got - want) <= unit * std::max(1.0, std::abs(want)) * 2;
}

}  // namespace

void fill_pattern(void* data, std::size_t count, DataType type, int rank, unsigned salt) {
  for (std::size_t i = 0; i < count; ++i) store(data, i, type, value(i, rank, salt));
}

std::size_t count_wrong(const void* data, std::size_t count, DataType type, Op op, int ranks,
                        unsigned salt, std::size_t offset) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i) {
    wrong += !near(load(data, i, type), reduced(offset + i, op, ranks, salt), type, op);
  }
  return wrong;
}

std::size_t count_wrong_copy(const void* data, std::size_t count, DataType type, int rank,
                             unsigned salt, std::size_t offset) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < count; ++i)
    wrong += load(data, i, type) != value(offset + i, rank, salt);
  return wrong;
}

}  // namespace riffle::host
