#include "topology/plan/lane_order.h"

#include <algorithm>

namespace riffle {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014). The standard library's distributions differ between
// implementations, so the shuffle is spelled out.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::size_t below(std::size_t n) {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return ((z ^ (z >> 31)) >> 32) * n >> 32;  // n is far below 2^32
  }

 private:
  std::uint64_t state_;
};

template <class T>
void turn_and_shuffle(std::vector<T>& items, std::size_t turn, Random& random) {
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
  Random random(seed * 0xd1342543de82ef95u + static_cast<std::uint64_t>(lane));
  const auto turn = static_cast<std::size_t>(lane);
  for (auto& rack : order.racks) turn_and_shuffle(rack, turn / order.racks.size(), random);
  turn_and_shuffle(order.racks, turn, random);
  return order;
}

}  // namespace riffle
