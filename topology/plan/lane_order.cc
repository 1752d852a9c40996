#include "topology/plan/lane_order.h"

#include <algorithm>

#include "topology/base/seeded_random.h"

namespace riffle {
namespace {

template <class T>
void turn_and_shuffle(std::vector<T>& items, std::size_t turn, SeededRandom& random) {
  std::rotate(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(turn % items.size()),
              items.end());
  for (std::size_t i = items.size(); i > 2; --i) {
    std::swap(items[i - 1], items[1 + random.below(i - 1)]);
  }
}

}  // namespace

std::vector<int> LaneOrder::flat() const {
  std::vector<int> order;
  for (const auto& rack : racks) order.insert(order.end(), rack.begin(), rack.end());
  return order;
}

LaneOrder lane_order(const FabricView& view, int lane, std::uint64_t seed) {
  LaneOrder order;
  for (const RackView& rack : view.racks()) order.racks.push_back(rack.members);
  if (lane == 0) return order;
  SeededRandom random(seed * 0xd1342543de82ef95u + static_cast<std::uint64_t>(lane));
  const auto turn = static_cast<std::size_t>(lane);
  for (auto& rack : order.racks) turn_and_shuffle(rack, turn / order.racks.size(), random);
  turn_and_shuffle(order.racks, turn, random);
  return order;
}

}  // namespace riffle
