// The arithmetic of a relaxed call (docs/policies.md): the state's rule, and the trailer by which a
// group knows who took part and whether all were at the same call.
//
// The trailer is summed with the elements: a weight (1, 0 for a member that keeps out, not a number
// for one whose input is not finite), then per 8-bit piece p of the member's digest p and p * p,
// for members that take part. Pieces are equal on all of them iff weight * sum(p * p) = sum(p)^2;
// all sums are exact in float32 up to 256 nodes, and with smaller pieces beyond.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/collective/types.h"

namespace riffle::rules {

std::size_t trailer_elements(int nodes);

struct Trailer {
  bool takes_part = true;
  bool is_finite = true;
  std::uint32_t digest = 0;
};
void write_trailer(const Trailer& trailer, int nodes, float* to);

struct Verdict {
  enum class Kind { kAverage, kKeep, kNotFinite };
  Kind kind = Kind::kKeep;
  int members = 0;  // kAverage: how many took part
};
// `digest`: the own one, of a member that took part.
Verdict read_trailer(const float* sum, int nodes, std::uint32_t digest);

bool supports(DataType type);

// z = state + g. False if any z is not finite.
bool prepare(const float* state, const std::byte* g, DataType type, std::size_t count, float* z);
// m = sum / members; output nodes * (m - state); state <- m, or 0 if `resets`.
void finish(const float* sum, int members, int nodes, std::size_t count, bool resets, float* state,
            DataType type, std::byte* out);
// Output nodes * g; state <- state + g where that is finite. `out` may be `g`.
void keep(const std::byte* g, int nodes, std::size_t count, float* state, DataType type,
          std::byte* out);
void fill_not_finite(std::size_t count, DataType type, std::byte* out);

}  // namespace riffle::rules
