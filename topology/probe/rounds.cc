#include "topology/probe/rounds.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace riffle::probe {
namespace {

std::vector<int> shuffled(int nodes, std::mt19937_64& random) {
  std::vector<int> list(static_cast<std::size_t>(nodes));
  std::iota(list.begin(), list.end(), 0);
  shuffle(&list, random);
  return list;
}

// Each node in `circle` sends to the one `shift` places on.
void add_shift(const std::vector<int>& circle, std::size_t shift, Round* round) {
  const std::size_t n = circle.size();
  if (n < 2 || shift % n == 0) return;
  for (std::size_t i = 0; i < n; ++i) round->flows.push_back({circle[i], circle[(i + shift) % n]});
}

// Members of every rack in random order, the largest rack first.
std::vector<std::vector<int>> members_of(const std::vector<int>& rack_of, std::mt19937_64& random) {
  std::vector<std::vector<int>> members;
  for (const int node : shuffled(static_cast<int>(rack_of.size()), random)) {
    const auto rack = static_cast<std::size_t>(rack_of[static_cast<std::size_t>(node)]);
    if (rack >= members.size()) members.resize(rack + 1);
    members[rack].push_back(node);
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return members;
}

}  // namespace

void shuffle(std::vector<int>* list, std::mt19937_64& random) {
  for (std::size_t i = list->size(); i > 1; --i) std::swap((*list)[i - 1], (*list)[random() % i]);
}

bool is_pairs(const Round& round, int nodes) {
  std::vector<bool> sends(static_cast<std::size_t>(nodes), false), receives(sends);
  for (const Flow& f : round.flows) {
    if (sends[static_cast<std::size_t>(f.from)] || receives[static_cast<std::size_t>(f.to)]) {
      return false;
    }
    sends[static_cast<std::size_t>(f.from)] = receives[static_cast<std::size_t>(f.to)] = true;
  }
  return true;
}

std::vector<Round> all_pairs(int nodes, std::mt19937_64& random) {
  const std::vector<int> circle = shuffled(nodes, random);
  std::vector<int> shifts(static_cast<std::size_t>(std::max(nodes, 1)) - 1);
  std::iota(shifts.begin(), shifts.end(), 1);
  shuffle(&shifts, random);
  std::vector<Round> rounds;
  for (const int shift : shifts) {
    add_shift(circle, static_cast<std::size_t>(shift), &rounds.emplace_back());
  }
  return rounds;
}

Round random_pairs(int nodes, std::mt19937_64& random) {
  Round round;
  add_shift(shuffled(nodes, random), 1, &round);
  return round;
}

Round neighbours(int nodes, int distance, std::mt19937_64& random) {
  // Whole pairs (x, x + distance) are drawn, each node in at most one, so that both ends are free.
  std::vector<bool> taken(static_cast<std::size_t>(nodes), false);
  Round round;
  std::vector<int> background;
  for (const int x : shuffled(nodes, random)) {
    const int y = (x + distance) % nodes;
    const auto free = [&](int node) { return !taken[static_cast<std::size_t>(node)]; };
    if (x == y || !free(x) || !free(y) ||
        static_cast<int>(round.flows.size()) >= std::max(2, nodes / 2)) {
      continue;
    }
    taken[static_cast<std::size_t>(x)] = taken[static_cast<std::size_t>(y)] = true;
    round.flows.push_back({x, y});
    round.flows.push_back({y, x});
  }
  for (int x = 0; x < nodes; ++x) {
    if (!taken[static_cast<std::size_t>(x)]) background.push_back(x);
  }
  shuffle(&background, random);
  add_shift(background, 1, &round);
  return round;
}

Round across_racks(const std::vector<int>& rack_of, std::mt19937_64& random) {
  const auto members = members_of(rack_of, random);
  std::vector<int> line;
  for (const auto& rack : members) line.insert(line.end(), rack.begin(), rack.end());
  const std::size_t n = line.size(), largest = members.front().size();
  Round round;
  if (2 * largest <= n) {
    // Racks lie one behind the other, none longer than the shift: every node leaves its own.
    add_shift(line, largest + random() % (n - 2 * largest + 1), &round);
    return round;
  }
  for (std::size_t i = largest; i < n; ++i) {
    round.flows.push_back({line[i - largest], line[i]});
    round.flows.push_back({line[i], line[i - largest]});
  }
  return round;
}

Round around_rack(const std::vector<int>& rack_of, int rack, std::mt19937_64& random) {
  std::vector<int> own, others;
  auto members = members_of(rack_of, random);
  // One node of every other rack in turn.
  for (std::size_t turn = 0; turn < rack_of.size(); ++turn) {
    for (const auto& m : members) {
      if (turn >= m.size()) continue;
      const bool is_own = rack_of[static_cast<std::size_t>(m[turn])] == rack;
      (is_own ? own : others).push_back(m[turn]);
    }
  }
  Round round;
  for (std::size_t i = 0; i < std::min(own.size(), others.size()); ++i) {
    round.flows.push_back({own[i], others[i]});
    round.flows.push_back({others[i], own[i]});
  }
  return round;
}

Round within_racks(const std::vector<int>& rack_of, std::mt19937_64& random) {
  Round round;
  for (const auto& rack : members_of(rack_of, random)) add_shift(rack, 1, &round);
  return round;
}

Round fan(int hub, const std::vector<int>& spokes) {
  Round round;
  for (const int spoke : spokes) {
    round.flows.push_back({hub, spoke});
    round.flows.push_back({spoke, hub});
  }
  return round;
}

std::vector<Round> fans(const std::vector<int>& rack_of, int group, std::mt19937_64& random) {
  std::vector<int> line;
  for (const auto& rack : members_of(rack_of, random)) {
    line.insert(line.end(), rack.begin(), rack.end());
  }
  const std::size_t n = line.size();
  const std::size_t groups = std::max<std::size_t>(1, n / static_cast<std::size_t>(group));
  std::vector<Round> rounds;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::vector<int> members(
        line.begin() + static_cast<std::ptrdiff_t>(g * n / groups),
        line.begin() + static_cast<std::ptrdiff_t>((g + 1) * n / groups));
    if (members.size() > rounds.size()) rounds.resize(members.size());
    for (std::size_t hub = 0; hub < members.size(); ++hub) {
      std::vector<int> spokes = members;
      spokes.erase(spokes.begin() + static_cast<std::ptrdiff_t>(hub));
      const Round one = fan(members[hub], spokes);
      rounds[hub].flows.insert(rounds[hub].flows.end(), one.flows.begin(), one.flows.end());
    }
  }
  return rounds;
}

}  // namespace riffle::probe
