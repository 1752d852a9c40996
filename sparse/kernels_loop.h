// The loops behind kernels.h. `Isa` must be a type of an anonymous namespace, so that each instance
// is local to its source file and the linker can never pick code with AVX for a processor without.
// It has kLanes, Vec, Mask (an unsigned integer), zero-extended loads of one vector per element
// type, hits (the lanes of magnitude >= least), emit (index and value of those lanes to memory, as
// whole vectors; returns how many), add, store, and stream, which stores to aligned memory past the
// caches until end_stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sparse/kernels.h"

namespace riffle::sparse {

template <class Isa, Element element>
struct Loop {
  using Vec = typename Isa::Vec;
  using Mask = typename Isa::Mask;
  static constexpr std::size_t kLanes = Isa::kLanes;
  static constexpr std::size_t kBytes = element == Element::kFloat32 ? 4 : 2;
  static constexpr std::size_t kVectors = 4;  // tested at once: at 1 % most groups have no hit
  static constexpr std::size_t kGroup = kVectors * kLanes;

  static Vec load(const char* from) {
    if constexpr (element == Element::kFloat32) {
      return Isa::load_float(from);
    } else if constexpr (element == Element::kFloat16) {
      return Isa::load_half(from);
    } else {
      return Isa::load_bfloat(from);
    }
  }

  // `load_at` gives the n-th vector of the group.
  template <class LoadAt>
  static std::size_t group(LoadAt load_at, std::size_t base, std::uint32_t least,
                           std::uint32_t* indices, float* values) {
    Vec v[kVectors];
    Mask hits[kVectors];
    Mask any = 0;
    for (std::size_t j = 0; j < kVectors; ++j) {
      v[j] = load_at(j);
      hits[j] = Isa::hits(v[j], least);
      any |= hits[j];
    }
    if (any == 0) return 0;
    std::size_t found = 0;
    for (std::size_t j = 0; j < kVectors; ++j) {
      found += Isa::emit(v[j], hits[j], static_cast<std::uint32_t>(base + j * kLanes),
                         indices + found, values + found);
    }
    return found;
  }

  static std::size_t collect(const void* data, std::size_t count, std::uint32_t least,
                             std::uint32_t* indices, float* values, std::size_t capacity) {
    const auto at = [](const char* from) {
      return [from](std::size_t j) { return load(from + j * kLanes * kBytes); };
    };
    const char* from = static_cast<const char*>(data);
    std::size_t found = 0;
    std::size_t i = 0;
    for (; count - i >= kGroup; i += kGroup) {
      found += group(at(from + i * kBytes), i, least, indices + found, values + found);
      if (found > capacity) return found;
    }
    if (i < count) {  // through a padded copy: nothing beyond the data may be read
      char padded[kGroup * kBytes] = {};
      __builtin_memcpy(padded, from + i * kBytes, (count - i) * kBytes);
      found += group(at(padded), i, least, indices + found, values + found);
    }
    return found;
  }

  static void accumulate(const void* gradient, const float* residual, std::size_t count,
                         float* out) {
    const char* from = static_cast<const char*>(gradient);
    std::size_t i = 0;
    for (; count - i >= kLanes; i += kLanes) {
      Isa::store(out + i, Isa::add(load(from + i * kBytes), residual + i));
    }
    if (i < count) {
      char padded[kLanes * kBytes] = {};
      float rest[kLanes] = {};
      __builtin_memcpy(padded, from + i * kBytes, (count - i) * kBytes);
      __builtin_memcpy(rest, residual + i, (count - i) * sizeof(float));
      Isa::store(rest, Isa::add(load(padded), rest));
      __builtin_memcpy(out + i, rest, (count - i) * sizeof(float));
    }
  }

  static std::size_t accumulate_and_collect(const void* gradient, const float* residual,
                                            std::size_t count, float* out, std::uint32_t least,
                                            std::uint32_t* indices, float* values,
                                            std::size_t capacity) {
    const char* from = static_cast<const char*>(gradient);
    std::size_t found = 0;
    const auto one_by_one = [&](std::size_t begin, std::size_t end) {
      accumulate(from + begin * kBytes, residual + begin, end - begin, out + begin);
      if (found > capacity) return;
      const std::size_t before = found;
      found += Loop<Isa, Element::kFloat32>::collect(
          out + begin, end - begin, least, indices + found, values + found, capacity - found);
      for (std::size_t n = before; n < found && found <= capacity; ++n) {
        indices[n] += static_cast<std::uint32_t>(begin);
      }
    };
    // A chunk is longer than what caches keep of it: what is stored there need not be fetched.
    constexpr std::size_t kLine = kLanes * sizeof(float);
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(out) % kLine;
    std::size_t i = beyond == 0 ? 0 : (kLine - beyond) / sizeof(float);
    if (i > count) i = count;
    one_by_one(0, i);
    for (; count - i >= kGroup && found <= capacity; i += kGroup) {
      const auto sum_at = [&](std::size_t j) {
        const std::size_t at = i + j * kLanes;
        const Vec v = Isa::add(load(from + at * kBytes), residual + at);
        Isa::stream(out + at, v);
        return v;
      };
      found += group(sum_at, i, least, indices + found, values + found);
    }
    Isa::end_stream();
    one_by_one(i, count);
    return found;
  }
};

template <class Isa>
struct KernelsOf {
  static constexpr Kernels kAll = {
      {Loop<Isa, Element::kFloat32>::collect, Loop<Isa, Element::kFloat16>::collect,
       Loop<Isa, Element::kBfloat16>::collect},
      {Loop<Isa, Element::kFloat32>::accumulate, Loop<Isa, Element::kFloat16>::accumulate,
       Loop<Isa, Element::kBfloat16>::accumulate},
      {Loop<Isa, Element::kFloat32>::accumulate_and_collect,
       Loop<Isa, Element::kFloat16>::accumulate_and_collect,
       Loop<Isa, Element::kBfloat16>::accumulate_and_collect}};
};

}  // namespace riffle::sparse
