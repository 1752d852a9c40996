#include "lab/cluster/profile.h"

#include <algorithm>

namespace riffle::cluster {

bool Profile::shaped() const {
  return std::ranges::all_of(rates, [](const Rates& r) { return r.least_kbps() > 0; });
}

Result<Profile> resized(const Profile& profile, int nodes) {
  int least = std::max({2, profile.fault.node + 1, profile.neighbour.node + 1,
                        static_cast<int>(profile.racks.size())});
  for (const BackgroundFlow& f : profile.flows) least = std::max({least, f.from + 1, f.to + 1});
  if (nodes < least || nodes > kMaxEmulatedNodes) {
    return invalid_argument("profile " + profile.name + " with " + std::to_string(nodes) +
                            " nodes: accepted are " + std::to_string(least) + " to " +
                            std::to_string(kMaxEmulatedNodes));
  }
  Profile out = profile;
  if (nodes == profile.size()) return out;
  out.name += "-" + std::to_string(nodes);
  out.about += "; here with " + std::to_string(nodes) + " nodes";
  out.rates.clear();
  out.rack_of.clear();
  out.cpu_percent.clear();
  for (int n = 0; n < nodes; ++n) {
    const auto like = static_cast<std::size_t>(n % profile.size());
    out.rates.push_back(profile.rates[like]);
    out.rack_of.push_back(profile.rack_of[like]);
    out.cpu_percent.push_back(profile.cpu_percent[like]);
  }
  for (int rack = 0; rack < static_cast<int>(out.racks.size()); ++rack) {
    if (std::ranges::find(out.rack_of, rack) != out.rack_of.end()) continue;
    return invalid_argument("profile " + profile.name + " with " + std::to_string(nodes) +
                            " nodes: rack " + out.racks[static_cast<std::size_t>(rack)].name +
                            " would be empty");
  }
  return out;
}

Profile even_profile(int nodes, std::int64_t rate_kbps) {
  const auto count = static_cast<std::size_t>(nodes);
  Profile profile;
  profile.name = "even" + std::to_string(nodes);
  profile.about = "equal nodes on one switch";
  profile.rates.assign(count, {rate_kbps, rate_kbps});
  profile.rack_of.assign(count, 0);
  profile.cpu_percent.assign(count, 0);
  profile.racks.push_back({"all", {}});
  return profile;
}

}  // namespace riffle::cluster
