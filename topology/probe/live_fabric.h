// From what a survey found to the Fabric that plans are made on, and to words.
//
// Measured rates differ by noise from node to node; planned on as they are, an even network would
// get an uneven plan. Rates within 6 % of each other therefore become one: their median. Pure.
#pragma once

#include <string>
#include <vector>

#include "topology/fabric/fabric.h"
#include "topology/probe/survey.h"

namespace riffle::probe {

// Link bytes per payload byte of an ideal TCP flow at this MTU (with timestamps): rates of a fabric
// are those of links. An MTU of 0 is taken for 1500.
double link_per_payload(int mtu);

// `names` in rank order. An error, naming the node, if a rate is missing or absurd.
Result<Fabric> to_fabric(const Findings& findings, const std::vector<std::string>& names, int mtu);

// One line: rates, slow nodes by name, racks with uplinks and confidence.
std::string describe(const Findings& findings, const Fabric& fabric);

}  // namespace riffle::probe
