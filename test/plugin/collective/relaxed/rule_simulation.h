// Nodes that train by the rules of plugin/collective/relaxed/rules/gradient_rules.h, and what to
// hold them against: a noisy problem, parameters that are averaged directly, and the sum that a
// step must conserve.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/kernels/convert.h"
#include "topology/plan/schedules/contraction.h"
#include "topology/plan/schedules/families.h"

namespace riffle::rules {

using Vectors = std::vector<std::vector<float>>;

inline const std::byte* bytes(const std::vector<float>& v) {
  return reinterpret_cast<const std::byte*>(v.data());
}
inline std::byte* bytes(std::vector<float>& v) { return reinterpret_cast<std::byte*>(v.data()); }

inline ScheduleTable grid(const std::vector<int>& shape) {
  const int nodes = std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
  const Fabric f = even_fabric(nodes, 1000);
  const FabricView view(f);
  std::string name = "grid";
  for (int side : shape) name += (name == "grid" ? " " : " x ") + std::to_string(side);
  for (const Cycle& cycle : propose_grids(view, {})) {
    if (cycle.name == name) return table_of(view, cycle);
  }
  ADD_FAILURE() << "no " << name;
  return {};
}

// The groups of a step, nodes without one by themselves.
inline NodeGroups groups_of(const ScheduleTable& table, std::uint64_t step) {
  std::vector<bool> is_placed(static_cast<std::size_t>(table.nodes), false);
  NodeGroups groups;
  for (const Group& g : table.at(step, 0).levels[0].groups) {
    groups.push_back(g.members);
    for (int m : g.members) is_placed[static_cast<std::size_t>(m)] = true;
  }
  for (std::size_t n = 0; n < is_placed.size(); ++n) {
    if (!is_placed[n]) groups.push_back({static_cast<int>(n)});
  }
  return groups;
}

inline NodeGroups all_nodes(int nodes) {
  std::vector<int> all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

// What the engine does: every member gets the float32 sum over its group.
inline Vectors summed(const Vectors& z, const NodeGroups& groups) {
  Vectors sums(z.size());
  for (const auto& group : groups) {
    std::vector<float> sum(z[0].size(), 0);
    for (int m : group) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += z[static_cast<std::size_t>(m)][i];
    }
    for (int m : group) sums[static_cast<std::size_t>(m)] = sum;
  }
  return sums;
}

inline int size_in(const NodeGroups& groups, std::size_t node) {
  for (const auto& group : groups) {
    if (std::find(group.begin(), group.end(), static_cast<int>(node)) != group.end()) {
      return static_cast<int>(group.size());
    }
  }
  return 0;
}

// Noisy quadratics with curvature .01 .. 1 whose minima differ between the nodes: gradient of node
// i at x is h (x - target_i) + noise.
class Problem {
 public:
  Problem(std::size_t nodes, std::size_t size) : random_(11), targets_(nodes) {
    for (std::size_t k = 0; k < size; ++k) {
      curvature_.push_back(0.01 * std::pow(100.0, static_cast<double>(k) / (size - 1.0)));
    }
    for (auto& target : targets_) {
      for (std::size_t k = 0; k < size; ++k) target.push_back(1 + normal_(random_));
    }
  }
  std::size_t nodes() const { return targets_.size(); }
  std::size_t size() const { return curvature_.size(); }
  void draw() {
    noise_.assign(nodes(), std::vector<double>(size()));
    for (auto& of_node : noise_) {
      for (double& x : of_node) x = 0.5 * normal_(random_);
    }
  }
  double gradient(std::size_t node, std::size_t k, double x) const {
    return curvature_[k] * (x - targets_[node][k]) + noise_[node][k];
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::vector<double> curvature_;
  std::vector<std::vector<double>> targets_, noise_;
};

using Parameters = std::vector<std::vector<double>>;

inline void average(Parameters& x, const NodeGroups& groups) {
  for (const auto& group : groups) {
    for (std::size_t k = 0; k < x[0].size(); ++k) {
      double mean = 0;
      for (int m : group) mean += x[static_cast<std::size_t>(m)][k];
      mean /= static_cast<double>(group.size());
      for (int m : group) x[static_cast<std::size_t>(m)][k] = mean;
    }
  }
}

struct Distance {
  double most = 0, reach = 1;
  void take(const Parameters& direct, const Parameters& job) {
    for (std::size_t n = 0; n < direct.size(); ++n) {
      for (std::size_t k = 0; k < direct[n].size(); ++k) {
        most = std::max(most, std::fabs(direct[n][k] - job[n][k]));
        reach = std::max(reach, std::fabs(direct[n][k]));  // from x = 0
      }
    }
  }
  double relative() const { return most / reach; }
};

// |sum of outputs - N * sum of inputs| <= N 2^-22 sum(|y| + |g|), per element.
struct Conservation {
  std::vector<double> outputs, inputs, sizes;
  explicit Conservation(std::size_t n) : outputs(n), inputs(n), sizes(n) {}
  void node(const std::vector<float>& y, const std::vector<float>& g,
            const std::vector<float>& out) {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      outputs[k] += out[k];
      inputs[k] += g[k];
      sizes[k] += std::fabs(y[k]) + std::fabs(g[k]);
    }
  }
  void expect(int nodes) const {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      ASSERT_LE(std::fabs(outputs[k] - nodes * inputs[k]), nodes * std::ldexp(sizes[k], -22));
    }
  }
};

inline std::vector<std::byte> narrowed(const std::vector<float>& v, DataType type) {
  std::vector<std::byte> to(v.size() * size_of(type));
  narrow(v.data(), type, v.size(), to.data());
  return to;
}

}  // namespace riffle::rules
