#include "plugin/collective/elastic/membership.h"

#include <algorithm>
#include <utility>

namespace riffle {

bool Membership::has(int node) const {
  return std::binary_search(nodes.begin(), nodes.end(), node);
}

int Membership::place_of(int node) const {
  const auto at = std::lower_bound(nodes.begin(), nodes.end(), node);
  return at != nodes.end() && *at == node ? static_cast<int>(at - nodes.begin()) : -1;
}

bool holds_quorum(const std::vector<int>& last, const std::vector<int>& side) {
  std::size_t held = 0;
  for (const int node : side) held += std::binary_search(last.begin(), last.end(), node);
  if (2 * held != last.size()) return 2 * held > last.size();
  return !last.empty() && std::binary_search(side.begin(), side.end(), last.front());
}

std::vector<int> mutual(std::vector<int> nodes, const std::function<bool(int, int)>& reaches) {
  while (true) {
    std::pair<int, int> most = {0, 0};  // missed by others, cut off in any direction
    std::size_t worst = 0;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      std::pair<int, int> counts = {0, 0};
      for (const int other : nodes) {
        if (other == nodes[i]) continue;
        const bool is_missed = !reaches(other, nodes[i]);
        counts.first += is_missed;
        counts.second += is_missed || !reaches(nodes[i], other);
      }
      if (counts >= most) {
        most = counts;
        worst = i;
      }
    }
    if (most.second == 0) return nodes;
    nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(worst));
  }
}

}  // namespace riffle
