// tools/order: what people and launchers read of an order of hosts.
#include "tools/order/order_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace riffle::tools::order_view_test {
namespace {

// Two racks of two hosts, in turn, behind half of a host's rate.
Fabric racks4() {
  Fabric fabric = even_fabric(4, 400'000);
  fabric.racks = {{"left", 200'000, 200'000}, {"right", 200'000, 200'000}};
  for (int n = 0; n < 4; ++n) {
    fabric.nodes[n].rack = n % 2;
    fabric.nodes[n].name = "node" + std::to_string(n);
  }
  return fabric;
}

OrderView viewed(const Fabric& fabric, const OrderOptions& options = {}) {
  auto view = view_order(fabric, options);
  EXPECT_TRUE(view) << view.status().message();
  return *view;
}

std::string text_of(const Fabric& fabric, const std::string& format, int slots = 1) {
  const auto text = written(viewed(fabric, {.slots = slots}), format);
  EXPECT_TRUE(text) << text.status().message();
  return *text;
}

TEST(OrderView, Formats) {
  const Fabric fabric = racks4();
  EXPECT_EQ(text_of(fabric, "hostfile", 8),
            "node0 slots=8\nnode2 slots=8\nnode1 slots=8\nnode3 slots=8\n");
  EXPECT_EQ(text_of(fabric, "rankfile", 2),
            "rank 0=node0 slot=0\nrank 1=node0 slot=1\nrank 2=node2 slot=0\nrank 3=node2 slot=1\n"
            "rank 4=node1 slot=0\nrank 5=node1 slot=1\nrank 6=node3 slot=0\nrank 7=node3 slot=1\n");
  EXPECT_EQ(text_of(fabric, "slurm"), "node0\nnode2\nnode1\nnode3\n");
  EXPECT_EQ(text_of(fabric, "slurm", 2),
            "node0\nnode0\nnode2\nnode2\nnode1\nnode1\nnode3\nnode3\n");
  EXPECT_EQ(text_of(fabric, "torchrun", 8),
            "node0 --nnodes=4 --node-rank=0 --master-addr=node0\n"
            "node2 --nnodes=4 --node-rank=1 --master-addr=node0\n"
            "node1 --nnodes=4 --node-rank=2 --master-addr=node0\n"
            "node3 --nnodes=4 --node-rank=3 --master-addr=node0\n");
  EXPECT_EQ(text_of(fabric, "mpijob", 8),
            "hosts: \"node0:8,node2:8,node1:8,node3:8\"\n"
            "workers:\n"
            "  - {index: 0, host: \"node0\"}\n"
            "  - {index: 1, host: \"node2\"}\n"
            "  - {index: 2, host: \"node1\"}\n"
            "  - {index: 3, host: \"node3\"}\n");
}

TEST(OrderView, EveryFormatIsWritten) {
  const Fabric fabric = racks4();
  const OrderView view = viewed(fabric);
  for (const std::string& format : kOrderFormats) EXPECT_TRUE(written(view, format)) << format;
  EXPECT_FALSE(written(view, "other"));
}

TEST(OrderView, TheFirstLineSaysWhatIsGained) {
  const Fabric fabric = racks4();
  // 1.5 x 16 MiB over every edge; two edges of four leave each rack, or one.
  EXPECT_EQ(viewed(fabric).headline(),
            "2013.3 ms for 16 MiB by NCCL's rings as the hosts are now, limited by uplink of rack "
            "left; 1006.6 ms in this order, 2.00 times as fast; bound 1006.6 ms");
  const Fabric alone = even_fabric(1, 1000), alike = even_fabric(4, 400'000);
  EXPECT_EQ(viewed(alone).headline(), "one host: there is no ring");
  const std::string even = viewed(alike).headline();
  EXPECT_NE(even.find("no order that was found is faster"), std::string::npos) << even;
}

TEST(OrderView, TextListsRanksWithHostAndRack) {
  const std::string text = text_of(racks4(), "text", 8);
  EXPECT_NE(text.find("ring of all hosts"), std::string::npos) << text;
  EXPECT_NE(text.find("4 now, 2 in this order"), std::string::npos) << text;
  EXPECT_NE(text.find("\n0-7          node0                    left"), std::string::npos) << text;
  EXPECT_NE(text.find("\n24-31        node3                    right"), std::string::npos) << text;
}

TEST(OrderView, JsonHasASchemaAndEverything) {
  const Fabric fabric = racks4();
  const auto text = written(viewed(fabric, {.group = 2, .slots = 8}), "json");
  ASSERT_TRUE(text);
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json["schema"], "riffle-order-1");
  ASSERT_EQ(json["rings"].size(), 2u);
  EXPECT_EQ(json["rings"][0]["members"], 4);
  EXPECT_EQ(json["rings"][1]["members"], 2);
  EXPECT_EQ(json["rings"][1]["before_crossings"], 4);
  EXPECT_EQ(json["rings"][1]["after_crossings"], 0);
  EXPECT_NEAR(json["rings"][0]["after_us"].get<double>(),
              json["rings"][0]["bound_us"].get<double>(), 1);
  EXPECT_GE(json["trees"]["before_us"], json["trees"]["after_us"]);
  ASSERT_EQ(json["order"].size(), 4u);
  EXPECT_EQ(json["order"][1]["host"], "node2");
  EXPECT_EQ(json["order"][1]["rank"], 8);
  EXPECT_EQ(json["order"][1]["rack"], "left");
}

TEST(OrderView, ErrorsNameWhatIsAccepted) {
  Fabric fabric = racks4();
  const auto odd = view_order(fabric, {.group = 3});
  ASSERT_FALSE(odd);
  EXPECT_NE(odd.status().message().find("accepted are 1, 2, 4"), std::string::npos);
  fabric.nodes[2].name = "node0";
  const auto twice = written(viewed(fabric), "hostfile");
  ASSERT_FALSE(twice);
  EXPECT_NE(twice.status().message().find("node0 is there twice"), std::string::npos);
  fabric.nodes[2].name = "my node";
  const auto blank = written(viewed(fabric), "slurm");
  ASSERT_FALSE(blank);
  EXPECT_NE(blank.status().message().find("'my node'"), std::string::npos);
  EXPECT_TRUE(written(viewed(fabric), "json"));
}

}  // namespace
}  // namespace riffle::tools::order_view_test
