#include "topology/plan/loads.h"

#include <algorithm>
#include <span>

#include "topology/plan/planner.h"

namespace riffle {
namespace {

void add(std::vector<Load>& a, const std::vector<Load>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i].add(b[i].units, b[i].frames);
}

std::uint64_t shard(const Group& g, std::size_t j) { return g.cuts[j + 1] - g.cuts[j]; }

// Scratch space, so that a level of many small groups does not pay for all racks in each of them.
struct RackParts {
  explicit RackParts(std::size_t racks) : members(racks), owners(racks), units(racks) {}
  std::vector<std::uint64_t> members, owners, units;
  std::vector<int> touched;
};

using RackOf = std::span<const int>;  // by rank

// In one hop: every member sends each other member that one's shard. The all-gather is the same
// with every message turned round. Counted by member, where pairs would be many.
void add_one_hop(RackOf rack_of, const Group& g, Phase phase, RackParts& parts, Loads& loads) {
  const bool forward = phase == Phase::kReduceScatter;
  auto& node_out = forward ? loads.node_out : loads.node_in;
  auto& node_in = forward ? loads.node_in : loads.node_out;
  auto& rack_up = forward ? loads.rack_up : loads.rack_down;
  auto& rack_down = forward ? loads.rack_down : loads.rack_up;
  const std::uint64_t span = g.end() - g.begin();
  const std::uint64_t others = g.members.size() - 1;
  std::uint64_t owners = 0;
  for (std::size_t j = 0; j < g.members.size(); ++j) owners += shard(g, j) > 0;

  for (std::size_t j = 0; j < g.members.size(); ++j) {
    const int m = g.members[j];
    const bool owns = shard(g, j) > 0;
    node_out[m].add(span - shard(g, j), owners - owns);
    node_in[m].add(others * shard(g, j), owns ? others : 0);
    const int r = rack_of[m];
    if (parts.members[r] == 0) parts.touched.push_back(r);
    parts.members[r] += 1;
    parts.owners[r] += owns;
    parts.units[r] += shard(g, j);
  }
  for (int r : parts.touched) {
    const std::uint64_t elsewhere = g.members.size() - parts.members[r];
    rack_up[r].add(parts.members[r] * (span - parts.units[r]),
                   parts.members[r] * (owners - parts.owners[r]));
    rack_down[r].add(parts.units[r] * elsewhere, parts.owners[r] * elsewhere);
    parts.members[r] = parts.owners[r] = parts.units[r] = 0;
  }
  parts.touched.clear();
}

void add_pairs(RackOf rack_of, const Group& g, Phase phase, Loads& loads) {
  for (const PairTraffic& t : exchange_of(g.pattern).traffic(g.cuts, phase)) {
    const int from = g.members[t.from], to = g.members[t.to];
    loads.node_out[from].add(t.units, t.shards);
    loads.node_in[to].add(t.units, t.shards);
    const int a = rack_of[from], b = rack_of[to];
    if (a != b) {
      loads.rack_up[a].add(t.units, t.shards);
      loads.rack_down[b].add(t.units, t.shards);
    }
  }
}

double time_us(const Load& load, double bytes, double header_bytes, double kbps) {
  const double part = static_cast<double>(load.units) / kShareUnits;
  return (part * bytes + static_cast<double>(load.frames) * header_bytes) * 8000 / kbps;
}

// Calls f(kind, name, load, kbps) for every link; uplinks come first, so that they win ties.
template <class F>
void for_each_link(const FabricView& view, const Loads& loads, const F& f) {
  const Fabric& fabric = view.fabric();
  for (std::size_t r = 0; r < view.racks().size(); ++r) {
    const RackView& rack = view.racks()[r];
    f("uplink of rack ", fabric.racks[rack.id].name, loads.rack_up[r], rack.up_kbps);
    f("downlink of rack ", fabric.racks[rack.id].name, loads.rack_down[r], rack.down_kbps);
  }
  for (int n = 0; n < view.size(); ++n) {
    const NodeLink& node = fabric.nodes[n];
    f("sending of node ", node.name, loads.node_out[n], static_cast<double>(node.out_kbps));
    f("receiving of node ", node.name, loads.node_in[n], static_cast<double>(node.in_kbps));
  }
}

Loads add_up(RackOf rack_of, Loads loads, const Level& level, Phase phase) {
  RackParts parts(loads.rack_up.size());
  for (const Group& g : level.groups) {
    if (exchange_of(g.pattern).depth(static_cast<int>(g.members.size())) == 1) {
      add_one_hop(rack_of, g, phase, parts, loads);
    } else {
      add_pairs(rack_of, g, phase, loads);
    }
  }
  return loads;
}

// `adds`: scratch space of at least as many elements as the group has members.
void count_sums(const Group& g, std::vector<char>& adds, std::vector<Added>& added) {
  const GroupExchange& exchange = exchange_of(g.pattern);
  const int size = static_cast<int>(g.members.size());
  if (size == 1) return;
  for (int j = 0; j < size; ++j) {
    const std::uint64_t units = shard(g, j);
    if (units == 0) continue;
    if (exchange.depth(size) == 1) {
      added[g.members[j]].sums += units;
      continue;
    }
    std::fill_n(adds.begin(), size, false);
    for (int m = 0; m < size; ++m) {
      if (m != j) adds[exchange.partial_to(size, j, m)] = true;
    }
    for (int m = 0; m < size; ++m) {
      if (adds[m]) added[g.members[m]].sums += units;
    }
  }
}

}  // namespace

Loads::Loads(std::size_t nodes, std::size_t racks)
    : node_out(nodes), node_in(nodes), rack_up(racks), rack_down(racks) {}

Loads::Loads(const FabricView& view)
    : Loads(static_cast<std::size_t>(view.size()), view.racks().size()) {}

Loads& Loads::operator+=(const Loads& other) {
  add(node_out, other.node_out);
  add(node_in, other.node_in);
  add(rack_up, other.rack_up);
  add(rack_down, other.rack_down);
  return *this;
}

std::uint64_t Loads::most_frames() const {
  std::uint64_t most = 0;
  for (std::size_t n = 0; n < node_out.size(); ++n) {
    most = std::max(most, node_out[n].frames + node_in[n].frames);
  }
  return most;
}

Loads loads_of(const FabricView& view, const Level& level, Phase phase) {
  return add_up(view.rack_of(), Loads(view), level, phase);
}

Loads loads_of(int nodes, const Level& level, Phase phase) {
  return add_up(std::vector<int>(nodes, 0), Loads(nodes, 1), level, phase);
}

std::vector<Added> added_up(const PlanSet& plans) {
  const int nodes = plans.lanes[0].nodes;
  std::vector<Added> added(static_cast<std::size_t>(nodes));
  std::vector<char> adds(added.size());
  for (const GroupPlan& plan : plans.lanes) {
    for (const Level& level : plan.levels) {
      const Loads loads = loads_of(nodes, level, Phase::kReduceScatter);
      for (std::size_t n = 0; n < added.size(); ++n) added[n].received += loads.node_in[n].units;
      for (const Group& g : level.groups) count_sums(g, adds, added);
    }
  }
  return added;
}

Slowest slowest(const FabricView& view, const Loads& loads, double bytes, double header_bytes) {
  double worst = 0;
  const char* kind = "";
  const std::string* name = nullptr;
  for_each_link(view, loads,
                [&](const char* k, const std::string& n, const Load& load, double kbps) {
                  const double t = time_us(load, bytes, header_bytes, kbps);
                  if (t > worst) {
                    worst = t;
                    kind = k;
                    name = &n;
                  }
                });
  return {worst, name == nullptr ? std::string() : kind + *name};
}

std::vector<LinkTime> link_times(const Fabric& fabric, const PlanSet& plans, std::uint64_t bytes) {
  const FabricView view(fabric);
  Loads loads(view);
  for (const GroupPlan& plan : plans.lanes) {
    for (const Level& level : plan.levels) {
      loads += loads_of(view, level, Phase::kReduceScatter);
      loads += loads_of(view, level, Phase::kAllGather);
    }
  }
  const double part = static_cast<double>(bytes) / static_cast<double>(plans.lanes.size());
  std::vector<LinkTime> times;
  for_each_link(view, loads,
                [&](const char* kind, const std::string& name, const Load& load, double kbps) {
                  if (load.units == 0) return;
                  times.push_back(
                      {kind + name, time_us(load, part, 0, kbps), static_cast<std::int64_t>(kbps)});
                });
  std::stable_sort(times.begin(), times.end(),
                   [](const LinkTime& a, const LinkTime& b) { return a.time_us > b.time_us; });
  return times;
}

}  // namespace riffle
