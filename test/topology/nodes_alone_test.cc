// topology/probe/nodes_alone.h: a node that stands alone in its rack is a slow node, no rack.
#include "topology/probe/nodes_alone.h"

#include <gtest/gtest.h>

#include "test/topology/probe_network.h"

namespace riffle::nodes_alone_test {
namespace {

using probe::NodeLimits;
using probe::NodeRates;
using probe::Racks;

TEST(NodesAlone, TakeTheUplinkForTheirRate) {
  Racks racks;
  racks.rack_of = {0, 1, 1, 2};
  racks.count = 3;
  racks.uplinks = {{80, 0}, {50, 50}, {200, 30}};
  NodeRates rates;
  rates.out.assign(4, {100, 1, false});
  rates.in.assign(4, {100, 1, false});
  const NodeLimits limits = limits_of_nodes_alone(racks);
  EXPECT_TRUE(limits.lower(&rates));
  EXPECT_EQ(rates.out[0].kbps, 80);
  EXPECT_EQ(rates.in[0].kbps, 100) << "0 is no limit";
  EXPECT_EQ(rates.out[1].kbps, 100) << "others share the uplink with it";
  EXPECT_EQ(rates.out[3].kbps, 100) << "an uplink faster than the node";
  EXPECT_EQ(rates.in[3].kbps, 30);
  EXPECT_FALSE(limits.lower(&rates)) << "already";
  EXPECT_FALSE(limits_of_nodes_alone(Racks{{0, 0}}).lower(&rates));
}

}  // namespace
}  // namespace riffle::nodes_alone_test
