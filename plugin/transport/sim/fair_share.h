// FairShare: max-min fair rates of flows that share resources.
//
// Max-min fair: no flow's rate can rise without lowering that of a flow that has no more. It is
// what TCP flows of equal round-trip times tend to, and the model of flow-level simulators. Found
// by progressive filling (Bertsekas and Gallager, Data Networks, 1992, section 6.5.2): the resource
// with the least capacity per open flow fixes its flows at that rate; repeat with what is left. A
// flow of weight w counts as w flows (weighted max-min fairness).
//
// Pure data, deterministic: the same calls give the same bits. Rates are in whatever unit the
// capacities have.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace riffle::sim {

class FairShare {
 public:
  static constexpr int kMostResources = 4;  // per flow

  int add_resource(double capacity);
  void set_capacity(int resource, double capacity) { resources_[resource].capacity = capacity; }
  double capacity(int resource) const { return resources_[resource].capacity; }
  int add_flow(std::span<const int> resources);  // 1 to 4 of them; starts inactive
  std::span<const int> resources_of(int flow) const;

  void set_weight(int flow, int weight);  // at least 1, as it is at the start

  void start(int flow);
  void stop(int flow);
  bool is_active(int flow) const { return flows_[flow].place >= 0; }
  const std::vector<int>& active() const { return active_; }

  // The rates of all active flows; they hold until the next call.
  void solve();
  double rate(int flow) const { return flows_[flow].rate; }

 private:
  struct Flow {
    std::array<int, kMostResources> resource{};
    std::array<int, kMostResources> position{};  // in that resource's list
    int count = 0;
    int weight = 1;
    int place = -1;  // in active_
    std::uint64_t solved = 0;
    double rate = 0;
  };
  struct Resource {
    double capacity = 0;
    double left = 0;
    std::int64_t weight = 0;  // of all active flows
    std::int64_t open = 0;    // of those whose rate is not fixed yet
    std::vector<int> flows;   // active ones
  };
  void fix(int flow, double share);

  std::vector<Flow> flows_;
  std::vector<Resource> resources_;
  std::vector<int> active_;
  std::vector<int> loaded_;  // scratch: resources with open flows
  std::uint64_t round_ = 0;
};

}  // namespace riffle::sim
