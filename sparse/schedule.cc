#include "sparse/schedule.h"

#include <algorithm>
#include <bit>

#include "topology/base/check.h"

namespace riffle::sparse {
namespace {

int modulo(int a, int n) { return ((a % n) + n) % n; }

std::vector<int> run_of(int first, int count, int n) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(modulo(first + i, n));
  return all;
}

// Positions of one team, or of one local rank in all teams.
struct Circle {
  int size;
  int self;    // number of this worker in the circle
  int base;    // position of number 0
  int stride;  // between numbers
  int position(int number) const { return base + modulo(number, size) * stride; }
};

void add_reduce_scatter(const Circle& circle, std::vector<Step>& steps) {
  const int rounds = ceil_log2(circle.size);
  for (int r = 0; r < rounds; ++r) {
    const int gap = 1 << (rounds - 1 - r);
    const int bag = r == 0 ? circle.size - gap : gap;
    steps.push_back({Phase::kReduceScatter, circle.position(circle.self + gap),
                     circle.position(circle.self - gap),
                     run_of(circle.self + gap, bag, circle.size),
                     run_of(circle.self, bag, circle.size)});
  }
}

void add_bruck(const Circle& circle, Phase phase, std::vector<Step>& steps) {
  for (int gap = 1; gap < circle.size; gap *= 2) {
    const int count = std::min(gap, circle.size - gap);
    steps.push_back({phase, circle.position(circle.self - gap), circle.position(circle.self + gap),
                     run_of(circle.self, count, circle.size),
                     run_of(circle.self + gap, count, circle.size)});
  }
}

void add_recursive(const Circle& circle, std::vector<Step>& steps) {
  for (int bit = circle.size / 2; bit > 0; bit /= 2) {
    const int partner = circle.self ^ bit;
    const int position = circle.position(partner);
    steps.push_back({Phase::kAcross, position, position, {circle.self}, {partner}});
  }
}

}  // namespace

int ceil_log2(int n) { return n <= 1 ? 0 : std::bit_width(static_cast<unsigned>(n - 1)); }

std::vector<Step> schedule(const Layout& layout, Across across, int position) {
  RIFFLE_CHECK(position >= 0 && position < layout.workers(), "no such position");
  const int size = layout.team_size();
  const int team = layout.team_of(position);
  const int rank = layout.local_rank_of(position);
  const Circle inside{size, rank, team * size, 1};
  const Circle beside{layout.teams(), team, rank, size};
  std::vector<Step> steps;
  add_reduce_scatter(inside, steps);
  if (across == Across::kRecursive) {
    RIFFLE_CHECK(std::has_single_bit(static_cast<unsigned>(layout.teams())),
                 "a recursive exchange needs a power of two of teams");
    add_recursive(beside, steps);
  } else {
    add_bruck(beside, Phase::kAcross, steps);
  }
  add_bruck(inside, Phase::kAllGather, steps);
  return steps;
}

Traffic predicted(const Layout& layout, Across across, int position,
                  std::uint64_t gathered_entries) {
  const int size = layout.team_size();
  const int teams = layout.teams();
  const int rank = layout.local_rank_of(position);
  const std::uint64_t own = layout.budget_of(rank);
  Traffic traffic;
  traffic.messages = 2 * static_cast<std::uint64_t>(ceil_log2(size)) +
                     static_cast<std::uint64_t>(ceil_log2(teams));
  traffic.entries = layout.budget() - own;  // reduce-scatter: every other block once
  traffic.entries += across == Across::kRecursive
                         ? own * static_cast<std::uint64_t>(ceil_log2(teams))
                         : gathered_entries * static_cast<std::uint64_t>(teams - 1);
  for (int gap = 1; gap < size; gap *= 2) {  // all-gather: T - 1 blocks from the own one on
    for (int i = 0; i < std::min(gap, size - gap); ++i) {
      traffic.entries += layout.budget_of((rank + i) % size);
    }
  }
  return traffic;
}

}  // namespace riffle::sparse
