#include "topology/plan/loads.h"

#include <algorithm>

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

// Reduce-scatter: everybody sends every other member that one's shard. The all-gather is the same
// with every message turned round.
void add_direct(const FabricView& view, const Group& g, Phase phase, RackParts& parts,
                Loads& loads) {
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
    const int r = view.rack_of(m);
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

// Member i passes on to member i+1 all shards but one: in reduce-scatter its own, which it keeps at
// the end, in all-gather that of member i+1, which started from there.
void add_ring(const FabricView& view, const Group& g, Phase phase, Loads& loads) {
  const std::size_t p = g.members.size();
  const std::uint64_t span = g.end() - g.begin();
  for (std::size_t i = 0; i < p; ++i) {
    const int from = g.members[i];
    const int to = g.members[(i + 1) % p];
    const std::uint64_t units = span - shard(g, phase == Phase::kReduceScatter ? i : (i + 1) % p);
    loads.node_out[from].add(units, p - 1);
    loads.node_in[to].add(units, p - 1);
    const int a = view.rack_of(from);
    const int b = view.rack_of(to);
    if (a != b) {
      loads.rack_up[a].add(units, p - 1);
      loads.rack_down[b].add(units, p - 1);
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

}  // namespace

Loads::Loads(const FabricView& view)
    : node_out(view.size()),
      node_in(view.size()),
      rack_up(view.racks().size()),
      rack_down(view.racks().size()) {}

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
  Loads loads(view);
  RackParts parts(view.racks().size());
  for (const Group& g : level.groups) {
    if (g.pattern == Pattern::kDirect) {
      add_direct(view, g, phase, parts, loads);
    } else {
      add_ring(view, g, phase, loads);
    }
  }
  return loads;
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
