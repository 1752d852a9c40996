#include "bench/peers/racks.h"

#include <algorithm>
#include <numeric>

namespace riffle::bench {

std::vector<std::vector<int>> racks_of(const cluster::Profile& profile) {
  std::vector<std::size_t> order(profile.racks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t rack) { return profile.racks[rack].pod; });
  std::vector<std::vector<int>> racks;
  for (const std::size_t rack : order) {
    std::vector<int> members;
    for (int node = 0; node < profile.size(); ++node) {
      if (profile.rack_of[static_cast<std::size_t>(node)] == static_cast<int>(rack)) {
        members.push_back(node);
      }
    }
    if (!members.empty()) racks.push_back(std::move(members));
  }
  return racks;
}

std::vector<std::vector<int>> racks_of(const Site& site) {
  if (site.cluster) return racks_of(site.cluster->profile());
  return {nodes_as_they_lie(site.ranks)};
}

std::vector<int> nodes_as_they_lie(int nodes) {
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> rack_order(const std::vector<std::vector<int>>& racks) {
  std::vector<int> order;
  for (const auto& rack : racks) order.insert(order.end(), rack.begin(), rack.end());
  return order;
}

}  // namespace riffle::bench
