#include "topology/plan/schedules/moshpit_keys.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "topology/base/seeded_random.h"
#include "topology/plan/schedules/families.h"

namespace riffle {
namespace {

constexpr double kLeastFill = 0.75;  // below it random groups mix as well or better
constexpr int kRounds = 24;          // of a period whose groups do not repeat by themselves
constexpr int kMostDimensions = 10;

std::uint64_t power(std::uint64_t base, int exponent) {
  std::uint64_t product = 1;
  for (int i = 0; i < exponent; ++i) product *= base;
  return product;
}

}  // namespace

MoshpitKeys::MoshpitKeys(int nodes, int side, int dimensions, std::uint64_t seed)
    : side_(static_cast<std::uint64_t>(side)), top_(power(side_, dimensions - 1)), seed_(seed) {
  RIFFLE_CHECK(side >= 2 && dimensions >= 1, "a grid has a side and a dimension");
  RIFFLE_CHECK(power(side_, dimensions) >= static_cast<std::uint64_t>(nodes),
               "more nodes than cells");
  std::vector<std::uint64_t> cells(static_cast<std::size_t>(nodes));
  // Nodes are dealt out over the keys, so that the first groups are of equal size.
  std::iota(cells.begin(), cells.end(), std::uint64_t{0});
  for (std::uint64_t& cell : cells) cell %= top_;
  SeededRandom(seed_).shuffle(cells);
  keys_ = std::move(cells);
}

NodeGroups MoshpitKeys::groups(const std::vector<bool>& alive) const {
  std::map<std::uint64_t, std::vector<int>> by_key;
  for (std::size_t n = 0; n < keys_.size(); ++n) {
    if (alive.empty() || alive[n]) by_key[keys_[n]].push_back(static_cast<int>(n));
  }
  NodeGroups groups;
  SeededRandom random(seed_ * 0xd1342543de82ef95u + round_ + 1);
  for (auto& entry : by_key) {
    std::vector<int>& members = entry.second;
    random.shuffle(members);
    // More peers than the side has places under one key, after failures: several groups of alike
    // size.
    const std::size_t parts = (members.size() + side_ - 1) / side_;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto at = [&](std::size_t p) {
        return members.begin() + static_cast<std::ptrdiff_t>(members.size() * p / parts);
      };
      groups.emplace_back(at(part), at(part + 1));
    }
  }
  return groups;
}

void MoshpitKeys::advance(const NodeGroups& groups, const std::vector<bool>& done) {
  ++round_;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (!done[g]) continue;
    // Which digits are handed out is drawn per group, or a grid with holes would always leave the
    // last ones empty.
    std::vector<std::uint64_t> digits(side_);
    std::iota(digits.begin(), digits.end(), std::uint64_t{0});
    if (groups[g].size() < side_) {
      const auto first = static_cast<std::uint64_t>(groups[g].front());
      SeededRandom(seed_ ^ (round_ << 32 | first)).shuffle(digits);
    }
    for (std::size_t c = 0; c < groups[g].size(); ++c) {
      std::uint64_t& key = keys_[static_cast<std::size_t>(groups[g][c])];
      if (top_ > 1) key = (key * side_ + digits[c]) % top_;
    }
  }
}

std::vector<Cycle> propose_incomplete_grids(const FabricView& view, const FamilyOptions& options) {
  const int nodes = view.size();
  std::vector<Cycle> cycles;
  for (int d = 2; d <= kMostDimensions; ++d) {
    if (options.dimensions != 0 && d != options.dimensions) continue;
    int side = 2;
    while (power(static_cast<std::uint64_t>(side), d) < static_cast<std::uint64_t>(nodes)) ++side;
    const auto cells = power(static_cast<std::uint64_t>(side), d);
    if (cells == static_cast<std::uint64_t>(nodes)) continue;  // a full grid
    if (nodes < kLeastFill * static_cast<double>(cells)) continue;
    Cycle cycle;
    cycle.name = "incomplete grid " + std::to_string(side) + " ^ " + std::to_string(d);
    MoshpitKeys keys(nodes, side, d, options.seed);
    for (int round = 0; round < kRounds; ++round) {
      cycle.steps.push_back(keys.groups());
      keys.advance(cycle.steps.back());
    }
    cycle.lanes = std::min(options.max_lanes, d);
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

std::vector<Cycle> propose_random_groups(const FabricView& view, const FamilyOptions& options) {
  const auto nodes = static_cast<std::size_t>(view.size());
  std::vector<Cycle> cycles;
  for (const std::size_t size : {2, 3, 4, 8, 16, 32}) {
    if (size >= nodes && size > 2) break;
    const std::size_t groups = std::max<std::size_t>(1, nodes / size);
    Cycle cycle;
    cycle.name = "random groups of " + std::to_string(size);
    SeededRandom random(options.seed);
    std::vector<int> order(nodes);
    std::iota(order.begin(), order.end(), 0);
    for (int round = 0; round < kRounds; ++round) {
      random.shuffle(order);
      NodeGroups step;
      for (std::size_t g = 0; g < groups; ++g) {
        const auto at = [&](std::size_t p) {
          return order.begin() + static_cast<std::ptrdiff_t>(nodes * p / groups);
        };
        step.emplace_back(at(g), at(g + 1));
      }
      cycle.steps.push_back(std::move(step));
    }
    cycle.lanes = std::min(options.max_lanes, 8);
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace riffle
