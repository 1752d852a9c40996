// Who sends what to whom, step by step. Every step of every worker is one message out and one in.
//
// Inside a team, local rank v, all sums modulo T, L = ceil(log2 T):
//   reduce-scatter  step r, gap g = 2^(L-1-r): blocks v+g, v+g+1, ... go to v+g, one message for
//                   all ("bag"); the first bag has T - 2^(L-1) blocks, then 2^(L-2), ..., 2, 1.
//                   Afterwards v holds the team's sum of block v, having sent every other block
//                   once, after all that it was to receive for it.
//   all-gather      Bruck's: step s, g = 2^s: v sends the first min(g, T-g) blocks from v on to
//   v-g.
// Between the two, workers of equal local rank in all d teams share their block:
//   gathered        (B-SAG, any d) Bruck's all-gather of the d teams' blocks, then one merge
//   recursive       (R-SAG, d a power of two) log2 d exchanges with the team whose number differs
//   in
//                   one bit, highest bit first, merging after each
#pragma once

#include <cstdint>
#include <vector>

#include "sparse/layout.h"

namespace riffle::sparse {

enum class Across : std::uint8_t { kGathered = 0, kRecursive = 1 };
enum class Phase : std::uint8_t { kReduceScatter = 0, kAcross = 1, kAllGather = 2 };

struct Step {
  Phase phase = Phase::kReduceScatter;
  int to = 0;  // positions
  int from = 0;
  // In the order of the message: blocks, in phase kAcross the teams whose version it is.
  std::vector<int> send;
  std::vector<int> receive;
  bool operator==(const Step&) const = default;
};

// kRecursive needs a power of two of teams: RIFFLE_CHECK.
std::vector<Step> schedule(const Layout& layout, Across across, int position);

int ceil_log2(int n);  // n >= 1

// What the formulas of the literature say about one worker, for exact selection of full budgets:
// 2 ceil(log2(P/d)) + ceil(log2 d) messages; entries sent, where an entry is an index and a value,
// 2 words.
//   d = 1: 2k(P-1)/P.   kRecursive: 2k(P-d)/P + k(d/P) log2 d.
//   kGathered: the same with (d-1) h in place of the last term, h the entries per team and block.
// With block budgets that differ the exact sums are returned, not the averages.
struct Traffic {
  std::uint64_t messages = 0;
  std::uint64_t entries = 0;
  bool operator==(const Traffic&) const = default;
};
Traffic predicted(const Layout& layout, Across across, int position,
                  std::uint64_t gathered_entries);

}  // namespace riffle::sparse
