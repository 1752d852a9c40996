// The memory of a library's connections, over a library of four functions: it stays where the
// library does not let it go.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "plugin/transport/nccl_net/receive_side.h"
#include "plugin/transport/nccl_net/send_side.h"

namespace riffle::slots_test {
namespace {

using nccl_net::kLibraryHandleBytes;
using nccl_net::Net;

// What the library does, and the regions that it was given, which are thus no leaks.
abi::NcclResult dereg_result, close_result;
auto& regions = *new std::vector<std::span<std::byte>>;

abi::NcclResult connect(void*, int, void*, void** comm, abi::NetDevHandle**) {
  *comm = &regions;
  return abi::kSuccess;
}
abi::NcclResult accept(void*, void** comm, abi::NetDevHandle**) {
  *comm = &regions;
  return abi::kSuccess;
}
abi::NcclResult reg(void*, void* data, std::size_t size, int, void** mhandle) {
  *mhandle = data;
  regions.emplace_back(static_cast<std::byte*>(data), size);
  return abi::kSuccess;
}
abi::NcclResult dereg(void*, void*) { return dereg_result; }
abi::NcclResult close_comm(void*) { return close_result; }
abi::NcclResult close_listener(void*) { return abi::kSuccess; }

Net library() {
  Net net;
  net.table.connect = connect;
  net.table.accept = accept;
  net.table.regMr = reg;
  net.table.deregMr = dereg;
  net.table.closeSend = net.table.closeRecv = close_comm;
  net.table.closeListen = close_listener;
  return net;
}

// As a library that is still at it. Under a sanitizer, or where the memory has gone back to the
// system, this ends the test if it is not there.
void write_late() { std::ranges::fill(regions.back(), std::byte{1}); }

struct Case {
  abi::NcclResult dereg, close;
};

TEST(SlotsTest, StayWhereTheLibraryDoesNotLetThemGo) {
  const Net net = library();
  for (const Case c :
       {Case{abi::kSystemError, abi::kSuccess}, {abi::kSuccess, abi::kRemoteError}}) {
    dereg_result = c.dereg;
    close_result = c.close;
    {
      nccl_net::SendSide side(net, nullptr, 0, 16, "node 1");
      ASSERT_TRUE(side.connect() && side.is_up());
      side.close();
    }
    write_late();
    {
      nccl_net::ReceiveSide side(net, nullptr, 0, 16, "node 1");
      ASSERT_TRUE(side.accept() && side.is_up());
      side.close();
    }
    write_late();
  }
}

// 128 nodes and more communicators than one.
TEST(SlotsTest, ThoseOfAllCommunicatorsOfAProcessAreBounded) {
  using nccl_net::SlotGrant;
  {
    const SlotGrant first(127, 12), second(127, 12);
    EXPECT_EQ(first.of_each(), 7u);
    EXPECT_EQ(second.of_each(), 2u);
    EXPECT_EQ(SlotGrant(1, 12).of_each(), 2u);
  }
  EXPECT_EQ(SlotGrant(127, 12).of_each(), 7u) << "the others have returned theirs";
  EXPECT_EQ(SlotGrant(1, 12).of_each(), 16u);
  EXPECT_EQ(SlotGrant(1, 6).of_each(), 8u);
}

}  // namespace
}  // namespace riffle::slots_test
