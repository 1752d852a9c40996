// What a fabric file says of a profile's network.
#include <algorithm>

#include "lab/cluster/network.h"
#include "lab/cluster/profile.h"

namespace riffle::cluster {
namespace {

using Index = std::size_t;

// 0 is no limit.
std::int64_t tighter(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

Rates tighter(const Rates& a, const Rates& b) {
  return {tighter(a.out_kbps, b.out_kbps), tighter(a.in_kbps, b.in_kbps)};
}

Rates plus(const Rates& a, const Rates& b) {
  return {a.out_kbps + b.out_kbps, a.in_kbps + b.in_kbps};
}

// `sum`: what all that is behind the link can carry together.
bool limits(const Rates& link, const Rates& sum) {
  return (link.out_kbps != 0 && link.out_kbps < sum.out_kbps) ||
         (link.in_kbps != 0 && link.in_kbps < sum.in_kbps);
}

// One NIC per node that is as fast as all of its NICs, and links that keep what background flows
// leave.
Profile joined_beside_background(Profile p) {
  for (Rates& r : p.rates) r = {r.out_kbps * p.nics, r.in_kbps * p.nics};
  p.nics = 1;
  for (const BackgroundFlow& flow : p.flows) {
    for_each_link(p, flow, [&](std::int64_t& kbps) {
      if (kbps != 0) kbps = std::max<std::int64_t>(1, kbps - flow.mean_kbps());
    });
  }
  return p;
}

// A fabric has one tier. Of each pod, what limits becomes a rack of it:
//  - racks whose uplinks limit nothing are no boundary: the pod is one rack behind its own uplink;
//  - a pod whose uplink limits nothing is none: its racks stay as they are;
//  - where both limit, the pod's uplink is divided among its racks in proportion to theirs. Such a
//    fabric promises nothing that the network does not have, but between racks of one pod the
//    network has more.
class OneTier {
 public:
  explicit OneTier(const Profile& profile)
      : profile_(profile), behind_(profile.racks.size()), seen_as_(profile.racks.size(), -1) {
    for (Index n = 0; n < profile.rates.size(); ++n) {
      Rates& sum = behind_[static_cast<Index>(profile.rack_of[n])];
      sum = plus(sum, profile.rates[n]);
    }
    for (Index r = 0; r < profile.racks.size(); ++r) {
      if (profile.racks[r].pod < 0) keep(r, profile.racks[r].uplink);
    }
    for (Index p = 0; p < profile.pods.size(); ++p) resolve(static_cast<int>(p));
  }

  const std::vector<RackLink>& racks() const { return racks_; }
  int rack_of(Index node) const { return seen_as_[static_cast<Index>(profile_.rack_of[node])]; }

 private:
  void keep(Index rack, const Rates& uplink) {
    seen_as_[rack] = static_cast<int>(racks_.size());
    racks_.push_back({profile_.racks[rack].name, uplink.out_kbps, uplink.in_kbps});
  }

  void resolve(int pod) {
    const Pod& p = profile_.pods[static_cast<Index>(pod)];
    std::vector<Index> members;
    bool racks_limit = false;
    Rates sum;
    for (Index r = 0; r < profile_.racks.size(); ++r) {
      if (profile_.racks[r].pod != pod) continue;
      members.push_back(r);
      racks_limit |= limits(profile_.racks[r].uplink, behind_[r]);
      sum = plus(sum, tighter(profile_.racks[r].uplink, behind_[r]));
    }
    if (!racks_limit) {
      for (const Index r : members) seen_as_[r] = static_cast<int>(racks_.size());
      racks_.push_back({p.name, p.uplink.out_kbps, p.uplink.in_kbps});
      return;
    }
    for (const Index r : members) {
      const Rates own = tighter(profile_.racks[r].uplink, behind_[r]);
      const Rates part = {p.uplink.out_kbps * own.out_kbps / sum.out_kbps,
                          p.uplink.in_kbps * own.in_kbps / sum.in_kbps};
      keep(r, limits(p.uplink, sum) ? tighter(own, part) : profile_.racks[r].uplink);
    }
  }

  const Profile& profile_;
  std::vector<Rates> behind_;  // per rack: the sum of its nodes
  std::vector<int> seen_as_;   // per rack: which of racks_
  std::vector<RackLink> racks_;
};

}  // namespace

std::string fabric_name_of(const Profile& profile, int node) {
  return profile.equal_host_names ? address_of(node) : "node" + std::to_string(node);
}

Fabric fabric_of(const Profile& profile) {
  RIFFLE_CHECK(profile.shaped(), "an unlimited link has no rate");
  const Profile calm = joined_beside_background(profile);
  const OneTier tier(calm);
  Fabric fabric;
  fabric.racks = tier.racks();
  for (Index n = 0; n < calm.rates.size(); ++n) {
    fabric.nodes.push_back({fabric_name_of(profile, static_cast<int>(n)), calm.rates[n].out_kbps,
                            calm.rates[n].in_kbps, tier.rack_of(n)});
  }
  return fabric;
}

Fabric contended_fabric_of(const Profile& profile) {
  Fabric fabric = fabric_of(profile);
  if (profile.neighbour.node < 0) return fabric;
  NodeLink& link = fabric.nodes[static_cast<Index>(profile.neighbour.node)];
  link.out_kbps -= profile.neighbour.guaranteed_kbps;
  link.in_kbps -= profile.neighbour.guaranteed_kbps;
  return fabric;
}

}  // namespace riffle::cluster
