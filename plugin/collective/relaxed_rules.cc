#include "plugin/collective/relaxed_rules.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "plugin/collective/float_environment.h"

namespace riffle::rules {
namespace {

// The most bits of which `nodes` squares still add up exactly in float32 (24 bits).
int piece_bits(int nodes) {
  int bits = 8;
  while (bits > 1 && static_cast<double>(nodes) * std::ldexp(1.0, 2 * bits) > std::ldexp(1.0, 24))
    --bits;
  return bits;
}

int pieces(int nodes) { return (32 + piece_bits(nodes) - 1) / piece_bits(nodes); }

float piece(std::uint32_t digest, int i, int bits) {
  return static_cast<float>(digest >> (i * bits) & ((1u << bits) - 1));
}

}  // namespace

std::size_t trailer_elements(int nodes) { return 1 + 2 * static_cast<std::size_t>(pieces(nodes)); }

void write_trailer(const Trailer& trailer, int nodes, float* to) {
  const int bits = piece_bits(nodes);
  const float weight = trailer.takes_part ? 1.0F : 0.0F;
  *to++ = trailer.is_finite ? weight : std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < pieces(nodes); ++i) {
    const float p = piece(trailer.digest, i, bits) * weight;
    *to++ = p;
    *to++ = p * p;
  }
}

Verdict read_trailer(const float* sum, int nodes, std::uint32_t digest) {
  const int bits = piece_bits(nodes);
  const float weight = sum[0];
  if (!std::isfinite(weight)) return {Verdict::Kind::kNotFinite, 0};
  bool is_same = weight >= 1;
  for (int i = 0; i < pieces(nodes); ++i) {
    const float p = piece(digest, i, bits);
    is_same = is_same && sum[1 + 2 * i] == weight * p && sum[2 + 2 * i] == weight * p * p;
  }
  if (!is_same) return {Verdict::Kind::kKeep, 0};
  return {Verdict::Kind::kAverage, static_cast<int>(weight)};
}

bool supports(DataType type) { return type == DataType::kFloat32; }

bool prepare(const float* state, const std::byte* g, DataType /*type*/, std::size_t count,
             float* z) {
  const DefaultFloatEnvironment environment;
  const auto* from = reinterpret_cast<const float*>(g);
  // A sum of x - x is 0 unless any x is not finite.
  float check = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const float x = state[i] + from[i];
    z[i] = x;
    check += x - x;
  }
  return check == 0;
}

void finish(const float* sum, int members, int nodes, std::size_t count, bool resets, float* state,
            DataType /*type*/, std::byte* out) {
  const DefaultFloatEnvironment environment;
  auto* to = reinterpret_cast<float*>(out);
  const auto divisor = static_cast<float>(members);
  const auto n = static_cast<float>(nodes);
  const float keeps = resets ? 0.0F : 1.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float m = sum[i] / divisor;
    to[i] = n * (m - state[i]);
    state[i] = keeps * m;
  }
}

void keep(const std::byte* g, int nodes, std::size_t count, float* state, DataType /*type*/,
          std::byte* out) {
  const DefaultFloatEnvironment environment;
  const auto* from = reinterpret_cast<const float*>(g);
  auto* to = reinterpret_cast<float*>(out);
  const auto n = static_cast<float>(nodes);
  for (std::size_t i = 0; i < count; ++i) {
    const float y = state[i] + from[i];
    if (std::isfinite(y)) state[i] = y;
    to[i] = n * from[i];
  }
}

void fill_not_finite(std::size_t count, DataType /*type*/, std::byte* out) {
  auto* to = reinterpret_cast<float*>(out);
  for (std::size_t i = 0; i < count; ++i) to[i] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace riffle::rules
