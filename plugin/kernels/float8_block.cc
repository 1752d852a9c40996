#include "plugin/kernels/float8_block.h"

#include <cstring>

#include "plugin/kernels/float_environment.h"
#include "plugin/kernels/reduce.h"
#include "plugin/kernels/reduce_kernels.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

BlockKernels kernels_of(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return portable_block_kernels();
    case Isa::kAvx2:
      return avx2_block_kernels();
    case Isa::kAvx512:
      return avx512_block_kernels();
    case Isa::kNeon:
      return neon_block_kernels();
  }
  return {};
}

}  // namespace

void pack_float8(const float* from, std::size_t count, std::byte* to) {
  pack_float8_with(best_isa(), from, count, to);
}

void unpack_float8(const std::byte* from, std::size_t count, float* to) {
  unpack_float8_with(best_isa(), from, count, to);
}

void pack_float8_with(Isa isa, const float* from, std::size_t count, std::byte* to) {
  const BlockKernels kernels = kernels_of(isa);
  RIFFLE_CHECK(kernels.pack != nullptr, "no such instruction set here");
  const DefaultFloatEnvironment environment;
  const std::size_t whole = count / kFloat8BlockElements;
  char* bytes = reinterpret_cast<char*>(to);
  kernels.pack(from, whole, bytes);
  const std::size_t rest = count - whole * kFloat8BlockElements;
  if (rest == 0) return;
  float padded[kFloat8BlockElements] = {};
  std::memcpy(padded, from + whole * kFloat8BlockElements, rest * sizeof(float));
  kernels.pack(padded, 1, bytes + whole * kFloat8BlockBytes);
}

void unpack_float8_with(Isa isa, const std::byte* from, std::size_t count, float* to) {
  const BlockKernels kernels = kernels_of(isa);
  RIFFLE_CHECK(kernels.unpack != nullptr, "no such instruction set here");
  const DefaultFloatEnvironment environment;
  const std::size_t whole = count / kFloat8BlockElements;
  const char* bytes = reinterpret_cast<const char*>(from);
  kernels.unpack(bytes, whole, to);
  const std::size_t rest = count - whole * kFloat8BlockElements;
  if (rest == 0) return;
  float padded[kFloat8BlockElements];
  kernels.unpack(bytes + whole * kFloat8BlockBytes, 1, padded);
  std::memcpy(to + whole * kFloat8BlockElements, padded, rest * sizeof(float));
}

}  // namespace riffle
