// One element of a reduction at a time, in double or in 64-bit integers: what the kernels must
// give bit for bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "plugin/kernels/types.h"
#include "test/plugin/kernels/float_reference.h"

namespace riffle::reference {

inline double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

inline double combine(ReduceOp op, double a, double b) {
  switch (op) {
    case ReduceOp::kSum:
      return a + b;
    case ReduceOp::kProd:
      return a * b;
    case ReduceOp::kMax:
      return larger(a, b);
    case ReduceOp::kMin:
      return -larger(-a, -b);
  }
  return 0;
}

// A float32 sum or product rounds the exact result once; double holds the product of two floats
// exactly and rounds their sum so finely that rounding again changes nothing (Figueroa 1995).
inline float combine(ReduceOp op, float a, float b) {
  return static_cast<float>(combine(op, static_cast<double>(a), static_cast<double>(b)));
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    case ReduceOp::kProd:
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    case ReduceOp::kMax:
      return a < b ? b : a;
    case ReduceOp::kMin:
      return b < a ? b : a;
  }
  return 0;
}

template <class T>
T canonical(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return std::numeric_limits<T>::quiet_NaN();
  }
  return value;
}

using Bytes = std::vector<unsigned char>;

template <class T>
Bytes plain(ReduceOp op, const std::vector<Bytes>& operands) {
  Bytes result = operands[0];
  for (std::size_t i = 0; i + sizeof(T) <= result.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, &operands[0][i], sizeof(T));
    for (std::size_t k = 1; k < operands.size(); ++k) {
      T next;
      std::memcpy(&next, &operands[k][i], sizeof(T));
      value = combine(op, value, next);
    }
    value = canonical(value);
    std::memcpy(&result[i], &value, sizeof(T));
  }
  return result;
}

template <class Bits>
Bytes narrow(const Format& format, ReduceOp op, const std::vector<Bytes>& operands) {
  Bytes result = operands[0];
  const auto load = [&](const Bytes& from, std::size_t i) {
    Bits bits;
    std::memcpy(&bits, &from[i], sizeof bits);
    return static_cast<float>(format.decode(bits));
  };
  for (std::size_t i = 0; i + sizeof(Bits) <= result.size(); i += sizeof(Bits)) {
    float value = load(operands[0], i);
    for (std::size_t k = 1; k < operands.size(); ++k) {
      value = combine(op, value, load(operands[k], i));
    }
    const Bits bits = static_cast<Bits>(format.encode(value));
    std::memcpy(&result[i], &bits, sizeof bits);
  }
  return result;
}

inline Bytes reduce(DataType type, ReduceOp op, const std::vector<Bytes>& operands) {
  static const Format half(kHalf), bfloat16(kBfloat16), e4m3(kE4m3), e5m2(kE5m2);
  switch (type) {
    case DataType::kInt8:
      return plain<std::int8_t>(op, operands);
    case DataType::kUint8:
      return plain<std::uint8_t>(op, operands);
    case DataType::kInt32:
      return plain<std::int32_t>(op, operands);
    case DataType::kUint32:
      return plain<std::uint32_t>(op, operands);
    case DataType::kInt64:
      return plain<std::int64_t>(op, operands);
    case DataType::kUint64:
      return plain<std::uint64_t>(op, operands);
    case DataType::kFloat16:
      return narrow<std::uint16_t>(half, op, operands);
    case DataType::kFloat32:
      return plain<float>(op, operands);
    case DataType::kFloat64:
      return plain<double>(op, operands);
    case DataType::kBfloat16:
      return narrow<std::uint16_t>(bfloat16, op, operands);
    case DataType::kFloat8E4m3:
      return narrow<std::uint8_t>(e4m3, op, operands);
    case DataType::kFloat8E5m2:
      return narrow<std::uint8_t>(e5m2, op, operands);
    case DataType::kFloat8Block:  // float8_block_test.cc
      break;
  }
  return {};
}

}  // namespace riffle::reference
