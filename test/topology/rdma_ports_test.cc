// The RDMA ports of machines made here.
#include "topology/host/rdma_ports.h"

#include <gtest/gtest.h>

#include "test/rdma_folder.h"

namespace riffle::rdma_ports_test {
namespace {

TEST(RdmaPorts, InTheOrderOfNamesAndNumbers) {
  RdmaFolder folder;
  folder.add("mlx5_1", 1, "4: ACTIVE", "Ethernet")
      .add("mlx5_0", 2, "1: DOWN", "InfiniBand")
      .add("mlx5_0", 1, "4: ACTIVE", "InfiniBand")
      .add("efa_0", 1, "4: ACTIVE", "Unspecified")
      .add("mlx5_2", 1, "2: INIT", "InfiniBand");
  std::string text;
  for (const RdmaPort& p : list_rdma_ports(folder.path())) {
    text += p.device + ":" + std::to_string(p.number) + (p.is_active ? " up " : " down ") +
            p.link_layer + "; ";
  }
  EXPECT_EQ(text,
            "efa_0:1 up Unspecified; mlx5_0:1 up InfiniBand; mlx5_0:2 down InfiniBand; "
            "mlx5_1:1 up Ethernet; mlx5_2:1 down InfiniBand; ");
}

TEST(RdmaPorts, NoneWhereThereIsNothingToRead) {
  RdmaFolder folder;
  EXPECT_TRUE(list_rdma_ports(folder.path()).empty());
  std::filesystem::create_directories(folder.path() + "/mlx5_0/ports/first");
  EXPECT_TRUE(list_rdma_ports(folder.path()).empty());
  std::filesystem::create_directories(folder.path() + "/mlx5_0/ports/1");  // gone while it is read
  ASSERT_EQ(list_rdma_ports(folder.path()).size(), 1u);
  EXPECT_FALSE(list_rdma_ports(folder.path())[0].is_active);
  EXPECT_TRUE(list_rdma_ports(folder.path() + "/absent").empty());
}

}  // namespace
}  // namespace riffle::rdma_ports_test
