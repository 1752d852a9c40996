#include "topology/plan/loads.h"

#include <algorithm>

namespace riffle {
namespace {

void add(std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
}

std::uint64_t shard(const Group& g, std::size_t j) { return g.cuts[j + 1] - g.cuts[j]; }

// Scratch space, so that a level of many small groups does not pay for all racks in each of them.
struct RackParts {
  explicit RackParts(std::size_t racks) : members(racks), units(racks) {}
  std::vector<std::uint64_t> members, units;
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
    node_out[m] += span - shard(g, j);
    node_in[m] += others * shard(g, j);
    loads.messages[m] += (owners - owns) + (owns ? others : 0);
    const int r = view.rack_of(m);
    if (parts.members[r] == 0) parts.touched.push_back(r);
    parts.members[r] += 1;
    parts.units[r] += shard(g, j);
  }
  for (int r : parts.touched) {
    rack_up[r] += parts.members[r] * (span - parts.units[r]);
    rack_down[r] += parts.units[r] * (g.members.size() - parts.members[r]);
    parts.members[r] = parts.units[r] = 0;
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
    loads.node_out[from] += units;
    loads.node_in[to] += units;
    loads.messages[from] += p - 1;
    loads.messages[to] += p - 1;
    const int a = view.rack_of(from);
    const int b = view.rack_of(to);
    if (a != b) {
      loads.rack_up[a] += units;
      loads.rack_down[b] += units;
    }
  }
}

double time_us(std::uint64_t units, std::uint64_t bytes, double kbps) {
  const double part = static_cast<double>(units) / kShareUnits;
  return part * static_cast<double>(bytes) * 8000 / kbps;
}

}  // namespace

Loads::Loads(const FabricView& view)
    : node_out(view.size()),
      node_in(view.size()),
      rack_up(view.racks().size()),
      rack_down(view.racks().size()),
      messages(view.size()) {}

Loads& Loads::operator+=(const Loads& other) {
  add(node_out, other.node_out);
  add(node_in, other.node_in);
  add(rack_up, other.rack_up);
  add(rack_down, other.rack_down);
  add(messages, other.messages);
  return *this;
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

Slowest slowest(const FabricView& view, const Loads& loads, std::uint64_t bytes) {
  const Fabric& fabric = view.fabric();
  double worst = 0;
  const char* kind = "";
  const std::string* name = nullptr;
  const auto consider = [&](std::uint64_t units, double kbps, const char* k, const std::string& n) {
    const double t = time_us(units, bytes, kbps);
    if (t > worst) {
      worst = t;
      kind = k;
      name = &n;
    }
  };
  for (std::size_t r = 0; r < view.racks().size(); ++r) {
    const RackView& rack = view.racks()[r];
    consider(loads.rack_up[r], rack.up_kbps, "uplink of rack ", fabric.racks[rack.id].name);
    consider(loads.rack_down[r], rack.down_kbps, "downlink of rack ", fabric.racks[rack.id].name);
  }
  for (int n = 0; n < view.size(); ++n) {
    const NodeLink& node = fabric.nodes[n];
    consider(loads.node_out[n], static_cast<double>(node.out_kbps), "sending of node ", node.name);
    consider(loads.node_in[n], static_cast<double>(node.in_kbps), "receiving of node ", node.name);
  }
  return {worst, name == nullptr ? std::string() : kind + *name};
}

}  // namespace riffle
