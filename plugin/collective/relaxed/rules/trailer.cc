#include "plugin/collective/relaxed/rules/trailer.h"

#include <cmath>
#include <limits>

#include "topology/base/check.h"

namespace riffle::rules {
namespace {

constexpr int kDigestBits = 32;
constexpr std::uint64_t kExact = std::uint64_t{1} << 24;  // whole numbers in float32

// The most bits of which `nodes` squares still add up exactly.
int piece_bits(int nodes) {
  RIFFLE_CHECK(nodes >= 1 && nodes <= 65536, "nodes of a communicator");
  int bits = 8;
  for (;; --bits) {
    const std::uint64_t most = (std::uint64_t{1} << bits) - 1;
    if (static_cast<std::uint64_t>(nodes) * most * most < kExact) return bits;
  }
}

int pieces_of(int bits) { return (kDigestBits + bits - 1) / bits; }

// A sum that can only be a whole number below 2^24; all else is memory of another use.
bool is_whole(float sum) {
  return sum >= 0 && sum < static_cast<float>(kExact) && std::trunc(sum) == sum;
}

}  // namespace

std::size_t trailer_elements(int nodes) {
  return 1 + 2 * static_cast<std::size_t>(pieces_of(piece_bits(nodes)));
}

void write_trailer(const Trailer& trailer, int nodes, float* to) {
  const int bits = piece_bits(nodes);
  const float weight = trailer.takes_part ? 1.0F : 0.0F;
  *to++ =
      trailer.takes_part && !trailer.is_finite ? std::numeric_limits<float>::quiet_NaN() : weight;
  for (int i = 0; i < pieces_of(bits); ++i) {
    const std::uint32_t piece = trailer.digest >> (i * bits) & ((1U << bits) - 1);
    const float p = weight * static_cast<float>(piece);
    *to++ = p;
    *to++ = p * p;
  }
}

Verdict read_trailer(const float* sum, int nodes) {
  if (!std::isfinite(sum[0])) return {Verdict::Kind::kNotFinite, 0};
  if (!is_whole(sum[0]) || sum[0] < 1 || sum[0] > static_cast<float>(nodes)) return {};
  const auto weight = static_cast<std::uint64_t>(sum[0]);
  for (int i = 0; i < pieces_of(piece_bits(nodes)); ++i) {
    const float first = sum[1 + 2 * i];
    const float second = sum[2 + 2 * i];
    if (!is_whole(first) || !is_whole(second)) return {};
    const auto p = static_cast<std::uint64_t>(first);
    if (weight * static_cast<std::uint64_t>(second) != p * p) return {};
  }
  return {Verdict::Kind::kAverage, static_cast<int>(weight)};
}

}  // namespace riffle::rules
