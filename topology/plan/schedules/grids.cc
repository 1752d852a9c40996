#include <algorithm>
#include <numeric>

#include "topology/base/seeded_random.h"
#include "topology/plan/schedules/families.h"

namespace riffle {
namespace {

constexpr std::size_t kFactorizations = 64;

void add_factorizations(int n, int most, std::size_t limit, std::vector<int>& factors,
                        std::vector<std::vector<int>>& all) {
  if (all.size() >= limit) return;
  if (n == 1) {
    all.push_back(factors);
    return;
  }
  for (int f = std::min(n, most); f >= 2; --f) {
    if (n % f != 0) continue;
    factors.push_back(f);
    add_factorizations(n / f, f, limit, factors, all);
    factors.pop_back();
  }
}

// Partition along one axis: nodes that differ in that digit only. Digits of position x in `order`
// in mixed radix, the first dimension counting fastest.
NodeGroups along_axis(const std::vector<int>& order, const std::vector<int>& dimensions,
                      std::size_t axis) {
  std::size_t stride = 1;
  for (std::size_t k = 0; k < axis; ++k) stride *= static_cast<std::size_t>(dimensions[k]);
  const auto side = static_cast<std::size_t>(dimensions[axis]);
  NodeGroups groups;
  for (std::size_t x = 0; x < order.size(); ++x) {
    if (x / stride % side != 0) continue;
    std::vector<int> members;
    for (std::size_t digit = 0; digit < side; ++digit) members.push_back(order[x + digit * stride]);
    groups.push_back(std::move(members));
  }
  return groups;
}

std::string shape_text(const std::vector<int>& dimensions) {
  std::string text;
  for (int side : dimensions) text += (text.empty() ? "" : " x ") + std::to_string(side);
  return text;
}

Cycle grid(const std::vector<int>& order, const std::vector<int>& dimensions, int max_lanes) {
  Cycle cycle;
  cycle.name = "grid " + shape_text(dimensions);
  for (std::size_t k = 0; k < dimensions.size(); ++k) {
    cycle.steps.push_back(along_axis(order, dimensions, k));
  }
  cycle.lanes = std::min(max_lanes, static_cast<int>(dimensions.size()));
  cycle.dimensions = dimensions;
  return cycle;
}

bool has_equal_racks(const FabricView& view) {
  return std::all_of(view.racks().begin(), view.racks().end(), [&](const RackView& r) {
    return r.members.size() == view.racks().front().members.size();
  });
}

}  // namespace

std::vector<std::vector<int>> factorizations(int n, std::size_t limit) {
  std::vector<std::vector<int>> all;
  std::vector<int> factors;
  add_factorizations(n, n, limit, factors, all);
  return all;
}

std::vector<Cycle> propose_grids(const FabricView& view, const FamilyOptions& options) {
  SeededRandom random(options.seed);
  std::vector<int> order;
  for (const RackView& rack : view.racks()) {
    std::vector<int> members = rack.members;
    random.shuffle(members);
    order.insert(order.end(), members.begin(), members.end());
  }
  std::vector<std::vector<int>> shapes;
  if (view.racks().size() > 1 && has_equal_racks(view)) {
    const auto racks = static_cast<int>(view.racks().size());
    for (const auto& inside : factorizations(view.size() / racks, kFactorizations)) {
      for (const auto& across : factorizations(racks, kFactorizations)) {
        shapes.push_back(inside);
        shapes.back().insert(shapes.back().end(), across.begin(), across.end());
      }
    }
  } else {
    shapes = factorizations(view.size(), kFactorizations);
  }
  std::vector<Cycle> cycles;
  for (const auto& shape : shapes) {
    if (options.dimensions != 0 && shape.size() != static_cast<std::size_t>(options.dimensions)) {
      continue;
    }
    if (shape.empty()) continue;
    cycles.push_back(grid(order, shape, options.max_lanes));
  }
  return cycles;
}

std::vector<Cycle> propose_reference(const FabricView& view, const FamilyOptions& options) {
  const std::size_t racks = view.racks().size();
  const std::size_t slots = view.racks().front().members.size();
  if (racks < 2 || slots < 2 || !has_equal_racks(view)) return {};
  SeededRandom random(options.seed);
  NodeGroups whole, columns(slots);
  for (const RackView& rack : view.racks()) {
    whole.push_back(rack.members);
    random.shuffle(whole.back());
    for (std::size_t s = 0; s < slots; ++s) columns[s].push_back(whole.back()[s]);
  }
  Cycle b{"pattern B", {}, 1, {}}, c{"pattern C", {}, 1, {}};
  for (std::size_t t = 0; t < slots; ++t) {
    NodeGroups groups{columns[t]};
    for (const auto& rack : whole) {
      std::vector<int> rest;
      for (std::size_t s = 0; s < slots; ++s) {
        if (s != t) rest.push_back(rack[s]);
      }
      groups.push_back(std::move(rest));
    }
    c.steps.push_back(whole);
    c.steps.push_back(groups);
    b.steps.push_back(std::move(groups));
  }
  b.lanes = std::min(options.max_lanes, static_cast<int>(b.steps.size()));
  c.lanes = std::min(options.max_lanes, 2);
  return {{"pattern A",
           {whole, columns},
           std::min(options.max_lanes, 2),
           {static_cast<int>(slots), static_cast<int>(racks)}},
          b,
          c};
}

}  // namespace riffle
