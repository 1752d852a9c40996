// The trailer of a relaxed sum: a few elements behind the data, summed with it, by which every
// member of the group learns the same three things: how many took part, whether all of them were at
// the same call, and whether any had input that is not finite (docs/policies.md).
//
// Element 0 is a weight: 1, or 0 of a member that keeps out, or not a number of one whose input is
// not finite. Then, for each piece p of the member's 32-bit digest of the call, p and p * p (0 of
// one that keeps out). The pieces of all who took part are equal iff weight * sum(p^2) = (sum p)^2,
// their variance being 0. Pieces have 8 bits up to 256 nodes and fewer beyond, so that all sums are
// whole numbers below 2^24: exact in float32, in any order of summation.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle::rules {

// `nodes`: of the communicator, 1 .. 65536; alike on all members.
std::size_t trailer_elements(int nodes);

struct Trailer {
  bool takes_part = true;  // false: it contributes zeros, which the caller sees to
  bool is_finite = true;
  std::uint32_t digest = 0;
};
void write_trailer(const Trailer& trailer, int nodes, float* to);

struct Verdict {
  enum class Kind {
    kAverage,    // of `members` contributions
    kKeep,       // they were not at the same call, or none took part: all keep their own
    kNotFinite,  // outputs are not numbers, no state changes
  };
  Kind kind = Kind::kKeep;
  int members = 0;
  bool operator==(const Verdict&) const = default;
};
// The same on all members, on those that kept out as well. Any bits are accepted.
Verdict read_trailer(const float* sum, int nodes);

}  // namespace riffle::rules
