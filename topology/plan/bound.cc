#include <algorithm>
#include <numeric>

#include "topology/plan/fabric_view.h"
#include "topology/plan/planner.h"

// Every exact all-reduce of S bytes is subject to two facts (docs/algorithms.md, "The bound"):
//
//  - Whatever part of the cluster is cut off, at least S bytes enter it and at least S bytes leave
//  it.
//  - If the cluster is split into K parts, then at least 2 (K-1) S bytes leave parts altogether,
//  since
//    every unit must be merged K-1 times and its sum handed out K-1 times; as many enter parts.
//
// The parts considered are single nodes and whole racks, which gives the four terms below. Sending
// and receiving are separate resources, so each term counts both and takes the worse.
namespace riffle {
namespace {

// Bytes over rates; S is factored out, so the unit is 1/(kbit/s).
struct Direction {
  std::vector<double> node_sum;  // per rack: sum over its nodes
  std::vector<double> uplink;    // per rack: out of (or into) the rack, capped at node_sum
  std::vector<double> opposite;  // per rack: the uplink the other way
  std::vector<int> members;      // per rack
};

// One part is all that lies outside rack r; the other parts are the rack's nodes. What the outside
// sends comes in over the downlink, hence `opposite`.
double rack_against_the_rest(const Direction& d) {
  double worst = 0;
  for (std::size_t r = 0; r < d.members.size(); ++r) {
    worst = std::max(worst, 2.0 * d.members[r] / (d.node_sum[r] + d.opposite[r]));
  }
  return worst;
}

// Racks in E are taken apart into nodes, each other rack is one part. Moving rack r into E adds
// m_r - 1 to the parts and B_r - U_r to the rate. The best E of a ratio of two such sums consists
// of the racks with the largest (m_r - 1) / (B_r - U_r): for the optimal value x, r belongs to E
// exactly if (m_r - 1) - x (B_r - U_r) > 0. So the prefixes of one sorted order are all there is to
// try.
double some_racks_apart(const Direction& d) {
  const std::size_t racks = d.members.size();
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < racks; ++r) {
    if (d.members[r] > 1) order.push_back(r);  // a rack of one node gains nothing
  }
  const auto parts = [&](std::size_t r) { return static_cast<double>(d.members[r] - 1); };
  const auto rate = [&](std::size_t r) { return d.node_sum[r] - d.uplink[r]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return parts(a) * rate(b) > parts(b) * rate(a);
  });
  double merged = static_cast<double>(racks) - 1;
  double sum = std::accumulate(d.uplink.begin(), d.uplink.end(), 0.0);
  double worst = merged / sum;
  for (std::size_t r : order) {
    merged += parts(r);
    sum += rate(r);
    worst = std::max(worst, merged / sum);
  }
  return 2 * worst;
}

}  // namespace

double bound_us(const Fabric& fabric, std::uint64_t bytes) {
  const FabricView view(fabric);
  if (view.size() == 1) return 0;
  double worst = 0;
  for (int n = 0; n < view.size(); ++n) worst = std::max(worst, 1 / view.rate_kbps(n));

  Direction out;
  Direction in;
  for (const RackView& rack : view.racks()) {
    const int members = static_cast<int>(rack.members.size());
    if (view.racks().size() > 1) {
      worst = std::max(worst, 1 / std::min(rack.up_kbps, rack.down_kbps));
    }
    out.node_sum.push_back(rack.out_kbps);
    out.uplink.push_back(rack.up_kbps);
    out.opposite.push_back(rack.down_kbps);
    out.members.push_back(members);
    in.node_sum.push_back(rack.in_kbps);
    in.uplink.push_back(rack.down_kbps);
    in.opposite.push_back(rack.up_kbps);
    in.members.push_back(members);
  }
  for (const Direction& d : {out, in}) {
    worst = std::max(worst, some_racks_apart(d));
    if (view.racks().size() > 1) worst = std::max(worst, rack_against_the_rest(d));
  }
  return worst * static_cast<double>(bytes) * 8000;  // bits over kbit/s is ms, here in us
}

}  // namespace riffle
