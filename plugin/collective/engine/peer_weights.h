// How what one node sends is shared out over the others in a plan: the weights of its links
// (Mesh::set_peer_weights).
//
// Why: links that share fairly give every connection the same rate, while a plan that uses every
// link up needs rates in proportion to what goes from node to node. In a rack of two nodes half of
// what a node sends goes to the other one, which by fair shares among fifteen gets a fifteenth of
// the link: the rest of the cluster runs ahead, waits for it, and the links stand idle.
//
// Pure data, any thread.
#pragma once

#include <vector>

#include "topology/plan/group_plan.h"

namespace riffle {

// Weights are this power of the bytes. 1 would be what the plan asks for, but then thin flows are
// late, and a link that is kept exactly as fast as the plan wants never shows that it could do
// more; 0 is fair sharing. Chosen by simulation (docs/engine.md, "Streams").
inline constexpr double kEvenness = 0.75;

// By peer: kMostWeight (mesh.h) for what is as large as the buffer, 1 at least, also where nothing
// is sent. Empty where all may have the same: plans of one level, plans whose groups are alike
// within a tenth on every level, and plans with relaxed groups, which meet one at a time.
// Precondition: validate(plans).
std::vector<int> peer_weights(const PlanSet& plans, int rank);

}  // namespace riffle
