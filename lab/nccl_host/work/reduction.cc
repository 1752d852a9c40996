#include "lab/nccl_host/work/reduction.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lab/nccl_host/work/small_floats.h"

namespace riffle::host {
namespace {

// How an element is computed with: as itself, except small floats.
template <class T>
struct Element {
  // Unsigned, because signed overflow would be undefined and NCCL's integers wrap.
  using Compute = T;
  static Compute load(T x) { return x; }
  static T store(Compute x) { return x; }
};
template <class T, T (*kStore)(float)>
struct SmallFloat {
  using Compute = float;
  static float load(T x) { return to_float(x); }
  static T store(float x) { return kStore(x); }
};
template <>
struct Element<Half> : SmallFloat<Half, to_half> {};
template <>
struct Element<Bfloat16> : SmallFloat<Bfloat16, to_bfloat16> {};
template <>
struct Element<Float8E4m3> : SmallFloat<Float8E4m3, to_e4m3> {};
template <>
struct Element<Float8E5m2> : SmallFloat<Float8E5m2, to_e5m2> {};

template <ReduceOp kOp, class C>
C apply(C a, C b) {
  if constexpr (kOp == ReduceOp::kMax) return a < b ? b : a;
  if constexpr (kOp == ReduceOp::kMin) return b < a ? b : a;
  if constexpr (std::is_integral_v<C>) {
    // In 64 unsigned bits nothing overflows in a way that C++ leaves undefined.
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<C>(kOp == ReduceOp::kSum ? x + y : x * y);
  } else {
    return kOp == ReduceOp::kSum ? a + b : a * b;
  }
}

constexpr std::size_t kTile = 2048;  // elements; fits the first-level cache with its operands

template <class T, ReduceOp kOp>
void run(std::span<void* const> dsts, std::span<const void* const> srcs, std::size_t count,
         const Averaging& averaging) {
  using E = Element<T>;
  using C = typename E::Compute;
  const bool plain = averaging.scale_first == 1 && averaging.divide_result == 1;
  C acc[kTile];
  for (std::size_t at = 0; at < count; at += kTile) {
    const std::size_t n = std::min(kTile, count - at);
    T* dst = static_cast<T*>(dsts[0]) + at;
    const T* first = static_cast<const T*>(srcs[0]) + at;
    if (srcs.size() == 2 && plain) {
      const T* second = static_cast<const T*>(srcs[1]) + at;
      for (std::size_t i = 0; i < n; ++i) {
        dst[i] = E::store(apply<kOp>(E::load(first[i]), E::load(second[i])));
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) acc[i] = E::load(first[i]);
      if (averaging.scale_first != 1) {
        const C factor = static_cast<C>(averaging.scale_first);
        for (std::size_t i = 0; i < n; ++i) acc[i] = E::load(E::store(acc[i] * factor));
      }
      for (std::size_t s = 1; s < srcs.size(); ++s) {
        const T* src = static_cast<const T*>(srcs[s]) + at;
        for (std::size_t i = 0; i < n; ++i) acc[i] = apply<kOp>(acc[i], E::load(src[i]));
      }
      if (averaging.divide_result != 1) {
        for (std::size_t i = 0; i < n; ++i)
          acc[i] = static_cast<C>(acc[i] / static_cast<C>(averaging.divide_result));
      }
      for (std::size_t i = 0; i < n; ++i) dst[i] = E::store(acc[i]);
    }
    for (std::size_t d = 1; d < dsts.size(); ++d) {
      std::memcpy(static_cast<T*>(dsts[d]) + at, dst, n * sizeof(T));
    }
  }
}

template <class T>
void run_op(std::span<void* const> dsts, std::span<const void* const> srcs, std::size_t count,
            ReduceOp op, const Averaging& averaging) {
  switch (op) {
    case ReduceOp::kSum:
      return run<T, ReduceOp::kSum>(dsts, srcs, count, averaging);
    case ReduceOp::kProd:
      return run<T, ReduceOp::kProd>(dsts, srcs, count, averaging);
    case ReduceOp::kMax:
      return run<T, ReduceOp::kMax>(dsts, srcs, count, averaging);
    case ReduceOp::kMin:
      return run<T, ReduceOp::kMin>(dsts, srcs, count, averaging);
  }
}

}  // namespace

void reduce_copy(std::span<void* const> dsts, std::span<const void* const> srcs, std::size_t count,
                 DataType type, ReduceOp op, const Averaging& averaging) {
  if (count == 0 || dsts.empty()) return;
  if (srcs.size() == 1 && averaging.scale_first == 1 && averaging.divide_result == 1) {
    for (void* dst : dsts) {
      if (dst != srcs[0]) std::memcpy(dst, srcs[0], count * size_of(type));
    }
    return;
  }
  switch (type) {
    case DataType::kInt8:
      return run_op<std::int8_t>(dsts, srcs, count, op, averaging);
    case DataType::kUint8:
      return run_op<std::uint8_t>(dsts, srcs, count, op, averaging);
    case DataType::kInt32:
      return run_op<std::int32_t>(dsts, srcs, count, op, averaging);
    case DataType::kUint32:
      return run_op<std::uint32_t>(dsts, srcs, count, op, averaging);
    case DataType::kInt64:
      return run_op<std::int64_t>(dsts, srcs, count, op, averaging);
    case DataType::kUint64:
      return run_op<std::uint64_t>(dsts, srcs, count, op, averaging);
    case DataType::kFloat16:
      return run_op<Half>(dsts, srcs, count, op, averaging);
    case DataType::kFloat32:
      return run_op<float>(dsts, srcs, count, op, averaging);
    case DataType::kFloat64:
      return run_op<double>(dsts, srcs, count, op, averaging);
    case DataType::kBfloat16:
      return run_op<Bfloat16>(dsts, srcs, count, op, averaging);
    case DataType::kFloat8E4m3:
      return run_op<Float8E4m3>(dsts, srcs, count, op, averaging);
    case DataType::kFloat8E5m2:
      return run_op<Float8E5m2>(dsts, srcs, count, op, averaging);
    case DataType::kFloat8Block:  // no type of NCCL's
      break;
  }
}

}  // namespace riffle::host
