// Where the network is left to NCCL's own InfiniBand transport, on machines made here.
#include "plugin/transport/device/rdma.h"

#include <gtest/gtest.h>

#include "test/rdma_folder.h"

namespace riffle::rdma_test {
namespace {

class Rdma : public ::testing::Test {
 protected:
  Rdma() {
    choice.ports = folder.path();
    choice.loads = [](const char* library) { return std::string(library) == "libibverbs.so.1"; };
  }
  // "left" or "stays", and what is said.
  std::string found() const {
    const RdmaFinding finding = find_rdma(choice);
    return (finding.is_left_to_nccl ? "left: " : "stays: ") + finding.text;
  }
  bool says(const std::string& what) const { return found().find(what) != std::string::npos; }

  RdmaFolder folder;
  RdmaChoice choice;
};

TEST_F(Rdma, ActivePortsOfBothKindsAreNccls) {
  EXPECT_EQ(found(), "stays: ");
  folder.add("mlx5_0", 1, "4: ACTIVE", "InfiniBand").add("mlx5_1", 1, "1: DOWN", "InfiniBand");
  EXPECT_TRUE(says("left: RDMA ports that NCCL can use are active: mlx5_0:1 (InfiniBand); "))
      << found();
  EXPECT_TRUE(says("RIFFLE_NET=tcp")) << found();
  folder.add("mlx5_1", 1, "4: ACTIVE", "Ethernet");
  EXPECT_TRUE(says("left: ")) << found();
  EXPECT_TRUE(says("mlx5_0:1 (InfiniBand), mlx5_1:1 (Ethernet)")) << found();
}

TEST_F(Rdma, PortsThatAreNotActiveAreNothing) {
  folder.add("efa_0", 1, "1: DOWN", "Unspecified")
      .add("mlx5_0", 1, "1: DOWN", "InfiniBand")
      .add("mlx5_1", 1, "2: INIT", "InfiniBand");
  EXPECT_EQ(found(), "stays: ");
}

// EFA: a job that only loads Riffle would lose it, and say nothing.
TEST_F(Rdma, PortsOfAnotherPluginAreNotPassedByInSilence) {
  folder.add("efa_0", 1, "4: ACTIVE", "Unspecified").add("efa_1", 1, "4: ACTIVE", "Unspecified");
  EXPECT_TRUE(find_rdma(choice).passes_ports_by);
  EXPECT_TRUE(
      says("stays: RDMA ports are active that only a plugin of their own can use: "
           "efa_0:1 (Unspecified), efa_1:1 (Unspecified); Riffle carries all of NET over "
           "TCP instead: RIFFLE_NET=ofi"))
      << found();
  choice.wish = "tcp";
  EXPECT_FALSE(find_rdma(choice).passes_ports_by);
  EXPECT_TRUE(says("Riffle carries TCP (RIFFLE_NET=tcp)")) << found();
  choice.wish = "auto";
  folder.add("mlx5_0", 1, "4: ACTIVE", "InfiniBand");
  EXPECT_TRUE(says("left: RDMA ports that NCCL can use are active: mlx5_0:1 (")) << found();
  EXPECT_FALSE(find_rdma(choice).passes_ports_by);
  choice.disabled = "1";
  EXPECT_TRUE(find_rdma(choice).passes_ports_by);
  EXPECT_TRUE(says("but NCCL_IB_DISABLE=1: Riffle carries TCP; RDMA ports are active that only "))
      << found();
}

TEST_F(Rdma, WhatSwitchesNcclsTransportOff) {
  folder.add("mlx5_0", 1, "4: ACTIVE", "InfiniBand");
  for (const char* value : {"1", "0x1", "-1", "2x"}) {
    choice.disabled = value;
    EXPECT_TRUE(says("stays: RDMA ports are active (mlx5_0:1 (InfiniBand)), but NCCL_IB_DISABLE="))
        << found();
  }
  for (const char* value : {"", "0", "no", "99999999999999999999"}) {
    choice.disabled = value;
    EXPECT_TRUE(says("left: ")) << found();
  }
}

TEST_F(Rdma, WithoutVerbsNcclHasNoTransport) {
  folder.add("mlx5_0", 1, "4: ACTIVE", "InfiniBand");
  choice.loads = [](const char*) { return false; };
  EXPECT_TRUE(says("stays: ")) << found();
  EXPECT_TRUE(says("libibverbs.so.1 does not load")) << found();
}

TEST_F(Rdma, ExcludedDevices) {
  folder.add("mlx5_0", 1, "4: ACTIVE", "InfiniBand").add("mlx5_1", 1, "4: ACTIVE", "InfiniBand");
  choice.hca = "=mlx5_1";
  EXPECT_TRUE(says("left: RDMA ports that NCCL can use are active: mlx5_1:1 (")) << found();
  choice.hca = "^mlx5";
  EXPECT_TRUE(says("stays: ")) << found();
  EXPECT_TRUE(says("NCCL_IB_HCA=^mlx5 excludes them")) << found();
}

TEST_F(Rdma, TheUserMayWantTcpAllTheSame) {
  folder.add("mlx5_0", 1, "4: ACTIVE", "Ethernet");
  choice.wish = "tcp";
  EXPECT_TRUE(says("but RIFFLE_NET=tcp: Riffle carries TCP")) << found();
  choice.wish = "auto";
  choice.network = "Riffle";  // with NCCL_NET a decline would be the end of the job
  EXPECT_TRUE(says("but NCCL_NET=Riffle leaves NCCL no other network")) << found();
  choice.network = "IB";
  EXPECT_TRUE(says("left: ")) << found();
}

// As matchIfList and parseStringList of NCCL's src/misc/utils.cc.
TEST(IsChosenHca, NcclsSyntax) {
  EXPECT_TRUE(is_chosen_hca("", "mlx5_0", 1));
  EXPECT_TRUE(is_chosen_hca("mlx5", "mlx5_0", 1));
  EXPECT_TRUE(is_chosen_hca("mlx4,mlx5_0", "mlx5_0", 1));
  EXPECT_TRUE(is_chosen_hca("mlx5_1", "mlx5_10", 1)) << "names are prefixes";
  EXPECT_FALSE(is_chosen_hca("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(is_chosen_hca("=mlx5_1,mlx5_2", "mlx5_2", 1));
  EXPECT_TRUE(is_chosen_hca("mlx5_0:1", "mlx5_0", 1));
  EXPECT_FALSE(is_chosen_hca("mlx5_0:2", "mlx5_0", 1));
  EXPECT_TRUE(is_chosen_hca("mlx5_0:", "mlx5_0", 2));
  EXPECT_TRUE(is_chosen_hca("mlx5_0:1:3:0", "mlx5_0", 1)) << "rail and plane say nothing here";
  EXPECT_FALSE(is_chosen_hca("mlx5_0:x", "mlx5_0", 1));
  EXPECT_FALSE(is_chosen_hca("^mlx5_0", "mlx5_0", 1));
  EXPECT_TRUE(is_chosen_hca("^mlx5_0", "mlx5_1", 1));
  EXPECT_TRUE(is_chosen_hca("^=mlx5_1:2", "mlx5_1", 1));
  EXPECT_FALSE(is_chosen_hca("^=mlx5_1:2", "mlx5_1", 2));
  EXPECT_TRUE(is_chosen_hca("^=mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(is_chosen_hca("=^mlx5", "mlx5_0", 1)) << "^ comes first";
  EXPECT_TRUE(is_chosen_hca(",,:2", "mlx5_0", 1)) << "no name: all";
  EXPECT_FALSE(is_chosen_hca("^", "mlx5_0", 1)) << "all but all";
}

}  // namespace
}  // namespace riffle::rdma_test
