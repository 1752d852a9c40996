#include "topology/plan/candidate.h"
#include "topology/plan/shares.h"

namespace riffle {

namespace {

// Few owners mean less traffic between all others, but more at once into each of them; large
// buffers, which gain next to nothing by it, stay with all.
constexpr double kFewMustGain = 1.03;

std::vector<double> rates_of(const FabricView& view, const std::vector<int>& members) {
  std::vector<double> rates;
  for (int n : members) rates.push_back(view.rate_kbps(n));
  return rates;
}

using Weigh = std::vector<double> (*)(std::span<const double> rates);
Blueprint direct(const FabricView& view, const char* name, Weigh weigh, double must_gain) {
  return {name, false,
          [&view, weigh](const LaneOrder& order) {
            const std::vector<int> members = order.flat();
            const auto cuts = cuts_of(weigh(rates_of(view, members)), 0, kShareUnits);
            return GroupPlan{view.size(), {{{{Pattern::kDirect, members, cuts}}}}};
          },
          must_gain};
}

}  // namespace

// One group of everybody, shares after the nodes' rates.
std::vector<Blueprint> propose_direct(const FabricView& view) {
  return {direct(view, "direct", direct_weights, 1),
          direct(view, "direct, few owners", few_owners_weights, kFewMustGain)};
}

}  // namespace riffle
