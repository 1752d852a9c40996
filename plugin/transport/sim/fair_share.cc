#include "plugin/transport/sim/fair_share.h"

#include <algorithm>

#include "topology/base/check.h"

namespace riffle::sim {
namespace {

// Resources this close to the tightest one are taken in the same step: equal in truth, apart by
// rounding.
constexpr double kEqual = 1 + 1e-12;

}  // namespace

int FairShare::add_resource(double capacity) {
  resources_.push_back({.capacity = capacity, .left = 0, .open = 0, .flows = {}});
  return static_cast<int>(resources_.size()) - 1;
}

int FairShare::add_flow(std::span<const int> resources) {
  RIFFLE_CHECK(!resources.empty() && resources.size() <= kMostResources, "resources of a flow");
  Flow& flow = flows_.emplace_back();
  for (const int r : resources) flow.resource[flow.count++] = r;
  return static_cast<int>(flows_.size()) - 1;
}

std::span<const int> FairShare::resources_of(int flow) const {
  return {flows_[flow].resource.data(), static_cast<std::size_t>(flows_[flow].count)};
}

void FairShare::set_weight(int flow, int weight) {
  RIFFLE_CHECK(weight >= 1, "the weight of a flow");
  Flow& f = flows_[flow];
  for (int i = 0; f.place >= 0 && i < f.count; ++i) {
    resources_[f.resource[i]].weight += weight - f.weight;
  }
  f.weight = weight;
}

void FairShare::start(int flow) {
  Flow& f = flows_[flow];
  RIFFLE_CHECK(f.place < 0, "the flow is active already");
  f.place = static_cast<int>(active_.size());
  f.rate = 0;
  active_.push_back(flow);
  for (int i = 0; i < f.count; ++i) {
    std::vector<int>& list = resources_[f.resource[i]].flows;
    resources_[f.resource[i]].weight += f.weight;
    f.position[i] = static_cast<int>(list.size());
    list.push_back(flow);
  }
}

void FairShare::stop(int flow) {
  Flow& f = flows_[flow];
  RIFFLE_CHECK(f.place >= 0, "the flow is not active");
  flows_[active_.back()].place = f.place;
  active_[f.place] = active_.back();
  active_.pop_back();
  f.place = -1;
  f.rate = 0;
  for (int i = 0; i < f.count; ++i) {
    std::vector<int>& list = resources_[f.resource[i]].flows;
    resources_[f.resource[i]].weight -= f.weight;
    Flow& last = flows_[list.back()];
    for (int k = 0; k < last.count; ++k) {
      if (last.resource[k] == f.resource[i]) last.position[k] = f.position[i];
    }
    list[f.position[i]] = list.back();
    list.pop_back();
  }
}

void FairShare::fix(int flow, double share) {
  Flow& f = flows_[flow];
  f.rate = share * f.weight;
  f.solved = round_;
  for (int i = 0; i < f.count; ++i) {
    Resource& r = resources_[f.resource[i]];
    r.left -= f.rate;
    r.open -= f.weight;
  }
}

void FairShare::solve() {
  ++round_;
  loaded_.clear();
  for (int i = 0; i < static_cast<int>(resources_.size()); ++i) {
    Resource& r = resources_[i];
    r.left = r.capacity;
    r.open = r.weight;
    if (r.open > 0) loaded_.push_back(i);
  }
  while (!loaded_.empty()) {
    double least = -1;
    std::size_t kept = 0;
    for (const int i : loaded_) {
      const Resource& r = resources_[i];
      if (r.open == 0) continue;
      loaded_[kept++] = i;
      const double share = std::max(r.left, 0.0) / static_cast<double>(r.open);
      if (least < 0 || share < least) least = share;
    }
    loaded_.resize(kept);
    for (const int i : loaded_) {
      const Resource& r = resources_[i];
      if (r.open == 0 || std::max(r.left, 0.0) > least * kEqual * static_cast<double>(r.open))
        continue;
      for (const int flow : r.flows) {
        if (flows_[flow].solved != round_) fix(flow, least);
      }
    }
  }
}

}  // namespace riffle::sim
