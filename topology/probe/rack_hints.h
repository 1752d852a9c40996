// Rack hints: what is heard of the racks before anything is measured: a label per node
// (RIFFLE_RACK), its subnet, the hops between nodes. A hint suggests a partition; it becomes one
// more candidate of the search (rack_search.h) and a prior for whatever resembles it, which the
// rounds may overrule.
//
// The prior is bounded: per node at most what the model lets a single flow say (RackModel::
// kMostNats). Every node takes part in a flow each way in each round, so a hint decides where the
// rounds hesitate and loses where they do not. A label was put there to name the rack; subnets and
// hops only often follow the racks, and count for half of it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/probe/rack_model.h"

namespace riffle::probe {

struct RackHint {
  std::string source;        // for messages
  double nats_per_node = 0;  // for a node that stands with just those that it is said to stand with
  std::vector<int> rack_of;  // per node, 0.., none empty
};

inline constexpr double kLabelNats = RackModel::kMostNats;
inline constexpr double kTraceNats = RackModel::kMostNats / 2;  // subnets, hops

// What is known of the racks when a survey begins.
struct KnownRacks {
  std::vector<int> rack_of;  // per node, beyond doubt; empty: racks are to be found
  std::vector<RackHint> hints;
};

// Nodes of the same text stand in one rack. None if a node has no text, or if that makes one rack
// of all nodes or one of each.
std::optional<RackHint> hint_of_texts(const std::string& source, double nats_per_node,
                                      const std::vector<std::string>& text_of);

// Nodes that are as few hops from each other as any two stand in one rack. None if hops are not
// known, or make no racks: within each as few, between them more.
std::optional<RackHint> hint_of_hops(int nodes, const std::vector<Observed>& all);

// Nats that speak for these racks: nodes count by how far the two racks they are in agree.
double prior(const std::vector<RackHint>& hints, const std::vector<int>& rack_of);

// The nodes that stand elsewhere than most of those that the hint puts beside them. Racks that the
// hint tells apart may be one: not every rack has a limited uplink.
std::vector<int> contradicting(const RackHint& hint, const std::vector<int>& rack_of);

}  // namespace riffle::probe
