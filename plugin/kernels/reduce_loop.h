// The reduction loop: formats say how elements become vectors, operations combine two vectors, the
// loop walks the operands in order, a few vectors of each at a time, and stores after all loads, so
// that dst may be any of the operands.
//
// `Isa` must be a type of an anonymous namespace (see float_formats.h) with kBytes, widen8,
// narrow8, widen16, narrow16 (between integers in memory and vectors of int32), load_half and
// store_half.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plugin/kernels/float8_block_loop.h"
#include "plugin/kernels/float_formats.h"
#include "plugin/kernels/reduce_kernels.h"

namespace riffle {

template <class T>
constexpr bool kIsFloat = std::is_floating_point_v<T>;

// One NaN for all: which operand's payload survives an addition differs between instruction sets.
template <class Isa, class T>
struct Canonical {
  using Vec = Vector<T, Isa::kBytes>;
  static Vec nan_free_of_payload(Vec v) {
    if constexpr (kIsFloat<T>) {
      return v == v ? v : Vec{} + static_cast<T>(__builtin_nan(""));
    } else {
      return v;
    }
  }
};

// Elements that are computed as they are stored.
template <class Isa, class T>
struct Plain {
  using Element = T;
  using Vec = Vector<T, Isa::kBytes>;
  static constexpr std::size_t kElementBytes = sizeof(T);
  static constexpr std::size_t kStepBytes = Isa::kBytes;
  static Vec load(const char* from) {
    Vec v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(char* to, Vec v) {
    v = Canonical<Isa, T>::nan_free_of_payload(v);
    __builtin_memcpy(to, &v, sizeof v);
  }
};

// Elements that are computed in float32 and rounded when stored.
template <class Isa, std::size_t element_bytes>
struct Narrow {
  using Element = float;
  using Vec = Vector<float, Isa::kBytes>;
  using Ints = Vector<std::int32_t, Isa::kBytes>;
  static constexpr std::size_t kElementBytes = element_bytes;
  static constexpr std::size_t kStepBytes = Isa::kBytes / sizeof(float) * element_bytes;
};

template <class Isa>
struct Half : Narrow<Isa, 2> {
  using typename Narrow<Isa, 2>::Vec;
  static Vec load(const char* from) { return Isa::load_half(from); }
  static void store(char* to, Vec v) {
    Isa::store_half(to, Canonical<Isa, float>::nan_free_of_payload(v));
  }
};

template <class Isa>
struct Bfloat16 : Narrow<Isa, 2> {
  using typename Narrow<Isa, 2>::Vec;
  using typename Narrow<Isa, 2>::Ints;
  static Vec load(const char* from) { return (Vec)(Isa::widen16(from) << 16); }
  static void store(char* to, Vec v) {
    const Ints bits = (Ints)v;
    const Ints odd = (bits >> 16) & 1;
    const Ints rounded = ((bits + 0x7fff + odd) >> 16) & 0xffff;
    Isa::narrow16(to, v == v ? rounded : Ints{} + 0x7fc0);
  }
};

template <class Isa, class Layout>
struct Float8 : Narrow<Isa, 1> {
  using typename Narrow<Isa, 1>::Vec;
  static Vec load(const char* from) {
    // Where the processor converts float16, float8 goes that way.
    if constexpr (requires { Isa::load_float8(from, Layout{}); }) {
      return Isa::load_float8(from, Layout{});
    } else {
      return NarrowFloat<Isa, Layout>::decode(Isa::widen8(from));
    }
  }
  static void store(char* to, Vec v) { Isa::narrow8(to, NarrowFloat<Isa, Layout>::encode(v)); }
};

template <class Format>
struct Sum {
  using Vec = typename Format::Vec;
  static Vec apply(Vec a, Vec b) {
    using T = typename Format::Element;
    if constexpr (kIsFloat<T>) {
      return a + b;
    } else {  // signed overflow is undefined, unsigned wraps
      using Wrapping = Vector<std::make_unsigned_t<T>, sizeof(Vec)>;
      return (Vec)((Wrapping)a + (Wrapping)b);
    }
  }
};

template <class Format>
struct Prod {
  using Vec = typename Format::Vec;
  static Vec apply(Vec a, Vec b) {
    using T = typename Format::Element;
    if constexpr (kIsFloat<T>) {
      return a * b;
    } else {
      using Wrapping = Vector<std::make_unsigned_t<T>, sizeof(Vec)>;
      return (Vec)((Wrapping)a * (Wrapping)b);
    }
  }
};

// Max and min. Floats that compare equal differ at most in the sign of zero: `and` of the two keeps
// a plus, `or` a minus, whatever the order.
template <class Format>
struct Max {
  using Vec = typename Format::Vec;
  static Vec apply(Vec a, Vec b) {
    if constexpr (kIsFloat<typename Format::Element>) {
      using Bits = decltype(a == b);
      const Vec larger = ((a > b) | (a != a)) ? a : b;
      return a == b ? (Vec)((Bits)a & (Bits)b) : larger;
    } else {
      return a > b ? a : b;
    }
  }
};

template <class Format>
struct Min {
  using Vec = typename Format::Vec;
  static Vec apply(Vec a, Vec b) {
    if constexpr (kIsFloat<typename Format::Element>) {
      using Bits = decltype(a == b);
      const Vec smaller = ((a < b) | (a != a)) ? a : b;
      return a == b ? (Vec)((Bits)a | (Bits)b) : smaller;
    } else {
      return a < b ? a : b;
    }
  }
};

template <class Format, class Op>
struct Loop {
  using Vec = typename Format::Vec;
  static constexpr std::size_t kStep = Format::kStepBytes;

  static const char* at(const void* base, std::size_t offset) {
    return static_cast<const char*>(base) + offset;
  }

  template <int vectors>
  static void block(char* dst, const void* const* sources, std::size_t operands,
                    std::size_t offset) {
    Vec result[vectors];
    const char* first = at(sources[0], offset);
    for (int v = 0; v < vectors; ++v) result[v] = Format::load(first + v * kStep);
    for (std::size_t k = 1; k < operands; ++k) {
      const char* next = at(sources[k], offset);
      for (int v = 0; v < vectors; ++v) {
        result[v] = Op::apply(result[v], Format::load(next + v * kStep));
      }
    }
    for (int v = 0; v < vectors; ++v) Format::store(dst + offset + v * kStep, result[v]);
  }

  // Less than a vector is left: through a padded copy, for nothing beyond an operand may be read.
  static void rest(char* dst, const void* const* sources, std::size_t operands, std::size_t offset,
                   std::size_t bytes) {
    char padded[kStep] = {};
    __builtin_memcpy(padded, at(sources[0], offset), bytes);
    Vec result = Format::load(padded);
    for (std::size_t k = 1; k < operands; ++k) {
      __builtin_memcpy(padded, at(sources[k], offset), bytes);
      result = Op::apply(result, Format::load(padded));
    }
    Format::store(padded, result);
    __builtin_memcpy(dst + offset, padded, bytes);
  }

  static void run(void* dst, const void* const* sources, std::size_t operands, std::size_t count) {
    constexpr int kUnrolled = 4;  // enough independent sums to hide the latency of one
    char* to = static_cast<char*>(dst);
    const std::size_t bytes = count * Format::kElementBytes;
    std::size_t offset = 0;
    for (; bytes - offset >= kUnrolled * kStep; offset += kUnrolled * kStep) {
      block<kUnrolled>(to, sources, operands, offset);
    }
    for (; bytes - offset >= kStep; offset += kStep) block<1>(to, sources, operands, offset);
    if (offset < bytes) rest(to, sources, operands, offset, bytes - offset);
  }
};

template <class Isa>
struct Kernels {
  using Blocks = Float8BlockLoop<Isa, Float8<Isa, E4m3Layout>>;

  template <class Format>
  static ReduceKernel of(ReduceOp op) {
    switch (op) {
      case ReduceOp::kSum:
        return Loop<Format, Sum<Format>>::run;
      case ReduceOp::kProd:
        return Loop<Format, Prod<Format>>::run;
      case ReduceOp::kMax:
        return Loop<Format, Max<Format>>::run;
      case ReduceOp::kMin:
        return Loop<Format, Min<Format>>::run;
    }
    return nullptr;
  }

  static ReduceKernel find(DataType type, ReduceOp op) {
    switch (type) {
      case DataType::kInt8:
        return of<Plain<Isa, std::int8_t>>(op);
      case DataType::kUint8:
        return of<Plain<Isa, std::uint8_t>>(op);
      case DataType::kInt32:
        return of<Plain<Isa, std::int32_t>>(op);
      case DataType::kUint32:
        return of<Plain<Isa, std::uint32_t>>(op);
      case DataType::kInt64:
        return of<Plain<Isa, std::int64_t>>(op);
      case DataType::kUint64:
        return of<Plain<Isa, std::uint64_t>>(op);
      case DataType::kFloat16:
        return of<Half<Isa>>(op);
      case DataType::kFloat32:
        return of<Plain<Isa, float>>(op);
      case DataType::kFloat64:
        return of<Plain<Isa, double>>(op);
      case DataType::kBfloat16:
        return of<Bfloat16<Isa>>(op);
      case DataType::kFloat8E4m3:
        return of<Float8<Isa, E4m3Layout>>(op);
      case DataType::kFloat8E5m2:
        return of<Float8<Isa, E5m2Layout>>(op);
      case DataType::kFloat8Block:
        return op == ReduceOp::kSum ? Blocks::sum : nullptr;
    }
    return nullptr;
  }

  static BlockKernels of_blocks() { return {Blocks::pack, Blocks::unpack}; }
};

}  // namespace riffle
