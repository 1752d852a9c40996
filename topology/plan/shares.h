// Shares: from rates to weights, from weights to cuts.
#pragma once

#include <span>
#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle {

// Weights (sum 1) of one direct group of all nodes, optimal for the given node rates: a member
// with weight w moves S (1 + (N-2) w) each way, so w_i = (T b_i / S - 1) / (N - 2) with the least T
// that covers the buffer (architecture: Bounds and weights). A member at the bound gets 0. Even for
// N = 2.
std::vector<double> direct_weights(std::span<const double> rates);

// The same with as few owners, the fastest members, as stay below their part of the least time by a
// good margin: where a slow member sets the pace the others have time to spare, and fewer owners
// mean fewer and larger messages. direct_weights() where that is not so.
std::vector<double> few_owners_weights(std::span<const double> rates);

// Of an even share: a member that would own less owns nothing. It would be waited for in every
// chunk, at a link that is full already.
inline constexpr double kSliver = 1.0 / 8;

// The weights scaled to sum 1, with those below `least_share` of an even one set to 0.
std::vector<double> normalized(std::vector<double> weights, double least_share = kSliver);

std::vector<double> even_weights(std::size_t n);

// Cuts of [begin, end) in proportion to the weights, inner ones rounded to multiples of `grain`
// units from `begin`. A weight of 0 gives an empty shard exactly.
std::vector<Share> cuts_of(std::span<const double> weights, Share begin, Share end,
                           Share grain = 1);

}  // namespace riffle
