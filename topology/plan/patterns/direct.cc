// The direct pattern: every member sends each other member that member's shard, owners add, owners
// send the sum to all others. Two steps; a member of weight w moves S(1 + (p-2)w) each way
// (docs/algorithms.md).
#include "topology/plan/patterns/pattern.h"

namespace riffle {
namespace {

class Direct final : public GroupExchange {
 public:
  const char* name() const override { return "direct"; }

  int partial_to(int /*size*/, int shard, int /*member*/) const override { return shard; }

  std::vector<int> partials_from(int size, int shard, int member) const override {
    std::vector<int> others;
    for (int m = 0; member == shard && m < size; ++m) {
      if (m != shard) others.push_back(m);
    }
    return others;
  }

  // Round the members, each from its own place on, so that not all send to member 0 first.
  std::vector<int> sum_to(int size, int shard, int member) const override {
    std::vector<int> others;
    for (int i = 1; member == shard && i < size; ++i) others.push_back((member + i) % size);
    return others;
  }

  int depth(int /*size*/) const override { return 1; }
  bool sums_in_member_order() const override { return true; }
};

}  // namespace

const GroupExchange& direct_exchange() {
  static const Direct instance;
  return instance;
}

}  // namespace riffle
