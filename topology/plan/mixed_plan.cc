// From a mixture to groups. A segment of the buffer is cut by centre: one interval per node that
// stands at the centre. A rack that reduces inside first has the same owners there; outside its own
// intervals its nodes sweep over the segment once more. Wherever no owner changes, one group of all
// that hold a sum does the second level.
#include <algorithm>
#include <bit>
#include <iterator>
#include <set>

#include "topology/plan/mixture.h"
#include "topology/plan/shares.h"

namespace riffle {
namespace {

struct Interval {
  Share begin, end;
  Share size() const { return end - begin; }
};

// Cuts lie on a common raster, so that those of different racks do not meet in slivers: a 64th of
// an even share of one node.
Share raster_of(std::size_t nodes) {
  return std::max<Share>(1, kShareUnits / 64 / std::bit_ceil(static_cast<Share>(nodes)));
}

std::vector<double> weights_of(const std::vector<int>& members, const Mixture& mixture) {
  std::vector<double> weights;
  for (int n : members) weights.push_back(mixture.inside[n]);
  return weights;
}

// One rack within one segment.
struct RackPart {
  const std::vector<int>* members = nullptr;
  bool apart = false;
  Interval centre{};                       // where its nodes are the centre
  std::vector<Share> centre_cuts;          // by member
  std::vector<std::vector<Share>> groups;  // cuts of its first-level groups, in rising order
};

// The rack's sweep over all of the segment but its own intervals, as cuts of up to two groups.
void add_sweep(const Mixture& mixture, Interval all, Share grain, RackPart& rack) {
  const Interval before{all.begin, rack.centre.begin};
  const Interval after{rack.centre.end, all.end};
  const auto sweep =
      cuts_of(weights_of(*rack.members, mixture), 0, before.size() + after.size(), grain);
  std::vector<Share> first, second;
  for (Share cut : sweep) {
    first.push_back(all.begin + std::min(cut, before.size()));
    second.push_back(after.begin + (cut - std::min(cut, before.size())));
  }
  if (before.size() > 0) rack.groups.push_back(std::move(first));
  if (rack.centre.size() > 0) rack.groups.push_back(rack.centre_cuts);
  if (after.size() > 0) rack.groups.push_back(std::move(second));
}

std::vector<RackPart> cut_segment(const FabricView& view, const LaneOrder& order,
                                  const Mixture& mixture, const MixtureSegment& segment,
                                  Interval all, Share grain) {
  std::vector<double> centres;
  for (const auto& members : order.racks) {
    centres.push_back(segment.centre[view.rack_of(members[0])]);
  }
  const auto cuts = cuts_of(centres, all.begin, all.end, grain);
  std::vector<RackPart> racks;
  for (std::size_t i = 0; i < order.racks.size(); ++i) {
    RackPart rack;
    rack.members = &order.racks[i];
    rack.apart = rack.members->size() == 1 || segment.apart[view.rack_of(order.racks[i][0])];
    rack.centre = {cuts[i], cuts[i + 1]};
    rack.centre_cuts =
        cuts_of(weights_of(*rack.members, mixture), rack.centre.begin, rack.centre.end, grain);
    if (!rack.apart) add_sweep(mixture, all, grain, rack);
    racks.push_back(std::move(rack));
  }
  return racks;
}

// Who holds the rack's sum of the unit at `at`: group and member in it.
struct Holder {
  std::size_t group = 0, member = 0;
  bool operator==(const Holder&) const = default;
};

Holder holder_of(const RackPart& rack, Share at) {
  Holder h;
  while (rack.groups[h.group].back() <= at) ++h.group;
  const auto& cuts = rack.groups[h.group];
  h.member =
      static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), at) - cuts.begin()) - 1;
  return h;
}

std::size_t centre_of(const std::vector<RackPart>& racks, Share at, std::size_t* member) {
  std::size_t r = 0;
  while (racks[r].centre.end <= at) ++r;
  const auto& cuts = racks[r].centre_cuts;
  *member =
      static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), at) - cuts.begin()) - 1;
  return r;
}

void add_second_level(const std::vector<RackPart>& racks, Level& level) {
  std::set<Share> breaks;
  for (const RackPart& rack : racks) {
    breaks.insert(rack.centre_cuts.begin(), rack.centre_cuts.end());
    for (const auto& cuts : rack.groups) breaks.insert(cuts.begin(), cuts.end());
  }
  std::vector<Holder> holders(racks.size()), last(racks.size());
  bool is_first = true;
  for (auto it = breaks.begin(); std::next(it) != breaks.end(); ++it) {
    const Share begin = *it, end = *std::next(it);
    for (std::size_t i = 0; i < racks.size(); ++i) {
      if (!racks[i].apart) holders[i] = holder_of(racks[i], begin);
    }
    if (is_first || holders != last) {
      Group group;
      for (std::size_t i = 0; i < racks.size(); ++i) {
        const auto& members = *racks[i].members;
        if (racks[i].apart) {
          group.members.insert(group.members.end(), members.begin(), members.end());
        } else {
          group.members.push_back(members[holders[i].member]);
        }
      }
      group.cuts.assign(group.members.size() + 1, begin);
      level.groups.push_back(std::move(group));
      last = holders;
      is_first = false;
    }
    // The centre's place among the members; centres come in the order of the members.
    std::size_t member = 0;
    const std::size_t centre = centre_of(racks, begin, &member);
    std::size_t place = racks[centre].apart ? member : 0;
    for (std::size_t i = 0; i < centre; ++i) place += racks[i].apart ? racks[i].members->size() : 1;
    auto& cuts = level.groups.back().cuts;
    std::fill(cuts.begin() + static_cast<std::ptrdiff_t>(place) + 1, cuts.end(), end);
  }
}

}  // namespace

GroupPlan mixed_plan(const FabricView& view, const LaneOrder& order, const Mixture& mixture) {
  GroupPlan plan{view.size(), {}};
  plan.levels.resize(2);
  const Share grain = raster_of(static_cast<std::size_t>(view.size()));
  std::vector<double> parts;
  for (const MixtureSegment& s : mixture.segments) parts.push_back(s.part);
  const auto limits = cuts_of(parts, 0, kShareUnits, grain);
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const Interval all{limits[s], limits[s + 1]};
    if (all.size() == 0) continue;
    const auto racks = cut_segment(view, order, mixture, mixture.segments[s], all, grain);
    for (const RackPart& rack : racks) {
      for (const auto& cuts : rack.groups) {
        plan.levels[0].groups.push_back({Pattern::kDirect, *rack.members, cuts});
      }
    }
    add_second_level(racks, plan.levels[1]);
  }
  if (plan.levels[0].groups.empty()) plan.levels.erase(plan.levels.begin());
  return plan;
}

std::size_t most_members(const FabricView& view, const Mixture& mixture) {
  std::size_t sum = 0;
  for (const MixtureSegment& s : mixture.segments) {
    std::size_t sums = 0;
    for (std::size_t r = 0; r < view.racks().size(); ++r) {
      sums += s.apart[r] ? view.racks()[r].members.size() : 1;
    }
    sum += sums * 2 * static_cast<std::size_t>(view.size());
  }
  return sum;
}

}  // namespace riffle
