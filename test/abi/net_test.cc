// NET's table, every version: arguments arrive at the service as they should and NCCL's conventions
// hold (NULL for "again", what is written, what is refused).
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "test/abi/drive.h"

namespace riffle::net_test {
namespace {

template <class Table>
class NetTable : public FakePluginTest {
 protected:
  void SetUp() override {
    FakePluginTest::SetUp();
    ASSERT_EQ(drive::init(net, &context), 0);
    ASSERT_EQ(drive::listen(net, context, 0, handle, &listener), 0);
    ASSERT_EQ(drive::connect(net, context, 0, handle, &send), 0);
    ASSERT_EQ(drive::accept(net, listener, &recv), 0);
    plugin.take_calls();
  }
  void TearDown() override {
    EXPECT_EQ(net.closeSend(send), 0);
    EXPECT_EQ(net.closeRecv(recv), 0);
    EXPECT_EQ(net.closeListen(listener), 0);
    EXPECT_EQ(drive::finalize(net, context), 0);
    FakePluginTest::TearDown();
  }

  const Table& net = FakePlugin::get().table<Table>();
  void *context = nullptr, *listener = nullptr, *send = nullptr, *recv = nullptr;
  char handle[128] = {};
  char data[64] = {};
};
TYPED_TEST_SUITE(NetTable, NetTables);

TYPED_TEST(NetTable, ShowsHostDevices) {
  drive::PropertiesOf<TypeParam> p;
  ASSERT_EQ(this->net.getProperties(0, &p), 0);
  EXPECT_STREQ(p.name, "riffle0");
  EXPECT_STREQ(p.pciPath, "/sys/devices/pci0000:00/0000:00:03.0");
  EXPECT_EQ(p.guid, 77u);
  EXPECT_EQ(p.speed, 25000);
  EXPECT_EQ(p.ptrSupport, abi::kPtrHost);
  EXPECT_EQ(p.maxComms, 65536);
  EXPECT_EQ(p.maxRecvs, 8);
  EXPECT_EQ(p.latency, 0);
  if constexpr (requires { p.netDeviceType; }) {
    EXPECT_EQ(p.netDeviceType, 0);
    EXPECT_EQ(p.netDeviceVersion, 0);
  }
  if constexpr (requires { p.regIsGlobal; }) {
    EXPECT_EQ(p.regIsGlobal, 0);
  }
  if constexpr (requires { p.vProps; }) {
    EXPECT_EQ(p.forceFlush, 0);
    EXPECT_EQ(p.vProps.ndevs, 1);
    EXPECT_EQ(p.vProps.devs[0], 0);
    EXPECT_EQ(p.maxP2pBytes, 1u << 30);
    EXPECT_EQ(p.maxCollBytes, 1u << 29);
  }
  if constexpr (requires { p.railId; }) {
    EXPECT_EQ(p.maxMultiRequestSize, 1);
    EXPECT_EQ(p.railId, -1);
    EXPECT_EQ(p.planeId, -1);
  }
  ASSERT_EQ(this->net.getProperties(1, &p), 0);
  EXPECT_EQ(p.pciPath, nullptr);
  EXPECT_EQ(this->net.getProperties(2, &p), 4);
  EXPECT_EQ(this->net.getProperties(-1, &p), 4);
  int count = 0;
  ASSERT_EQ(this->net.devices(&count), 0);
  EXPECT_EQ(count, 2);
}

TYPED_TEST(NetTable, ListenKnowsTheCommunicator) {
  void* other = nullptr;
  ASSERT_EQ(drive::listen(this->net, this->context, 1, this->handle, &other), 0);
  const std::uint64_t id = drive::kHasContext<TypeParam> ? drive::kCommId : 0;
  EXPECT_EQ(this->plugin.take_calls(), "devices\nnet::listen 1 " + std::to_string(id) + "\n");
  EXPECT_EQ(drive::listen(this->net, this->context, 2, this->handle, &other), 4);
  EXPECT_EQ(other, nullptr);
}

TYPED_TEST(NetTable, NullMeansAgain) {
  this->plugin.fail(kFailNotYet);
  void* out = reinterpret_cast<void*>(1);
  EXPECT_EQ(drive::connect(this->net, this->context, 0, this->handle, &out), 0);
  EXPECT_EQ(out, nullptr);
  out = reinterpret_cast<void*>(1);
  EXPECT_EQ(drive::accept(this->net, this->listener, &out), 0);
  EXPECT_EQ(out, nullptr);
  out = reinterpret_cast<void*>(1);
  EXPECT_EQ(drive::isend(this->net, this->send, this->data, 8, 0, &out), 0);
  EXPECT_EQ(out, nullptr);
  // The marker with which NCCL 2.24 on says that it can do without the completion.
  out = reinterpret_cast<void*>(abi::kOptionalRecvCompletion);
  void* buffer = this->data;
  const std::size_t size = 8;
  int tag = 0;
  EXPECT_EQ(drive::irecv(this->net, this->recv, 1, &buffer, &size, &tag, &out), 0);
  EXPECT_EQ(out, nullptr);
}

TYPED_TEST(NetTable, SendsAndReceivesGroups) {
  void* request = nullptr;
  ASSERT_EQ(drive::isend(this->net, this->send, this->data, 0, -7, &request), 0);
  ASSERT_NE(request, nullptr);
  void* buffers[9] = {};
  std::size_t sizes[9] = {};
  int tags[9] = {};
  std::string expected = "net::isend 1 0 -7 " + std::to_string((std::uintptr_t)this->data) + "\n";
  expected += "net::irecv 1 8";
  for (int i = 0; i < 8; ++i) {
    buffers[i] = this->data + i;
    sizes[i] = 100u + static_cast<unsigned>(i);
    tags[i] = 50 - i;
    expected += " " + std::to_string((std::uintptr_t)buffers[i]) + "/" + std::to_string(sizes[i]) +
                "/" + std::to_string(tags[i]);
  }
  request = reinterpret_cast<void*>(abi::kOptionalRecvCompletion);
  ASSERT_EQ(drive::irecv(this->net, this->recv, 8, buffers, sizes, tags, &request), 0);
  EXPECT_EQ(this->plugin.take_calls(), expected + "\n");
  EXPECT_EQ(drive::irecv(this->net, this->recv, 9, buffers, sizes, tags, &request), 4);
  EXPECT_EQ(drive::irecv(this->net, this->recv, 0, buffers, sizes, tags, &request), 4);
}

TYPED_TEST(NetTable, TestAlwaysWritesDone) {
  void* request = nullptr;
  ASSERT_EQ(drive::isend(this->net, this->send, this->data, 8, 0, &request), 0);
  int done = -1, size = -1;
  this->plugin.fail(kFailNotYet);
  EXPECT_EQ(this->net.test(request, &done, &size), 0);
  EXPECT_EQ(done, 0);
  this->plugin.fail(kFailNot);
  EXPECT_EQ(this->net.test(request, &done, &size), 0);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(size, 4711);
  EXPECT_EQ(this->net.test(request, &done, nullptr), 0);
  EXPECT_EQ(done, 1);
}

TYPED_TEST(NetTable, FlushIsNotNecessary) {
  void* request = this->data;
  void* buffer = this->data;
  int size = 8;
  void* mhandle = nullptr;
  EXPECT_EQ(this->net.iflush(this->recv, 1, &buffer, &size, &mhandle, &request), 0);
  EXPECT_EQ(request, nullptr);
}

TYPED_TEST(NetTable, RegistersHostMemoryOnly) {
  void* mhandle = this->data;
  this->plugin.take_lines();
  EXPECT_EQ(this->net.regMr(this->send, this->data, 64, abi::kPtrCuda, &mhandle), 4);
  EXPECT_EQ(mhandle, nullptr);
  const auto lines = this->plugin.take_lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("host memory"), std::string::npos) << lines[0];
  if constexpr (drive::kHasIntSizes<TypeParam>) {
    EXPECT_EQ(this->net.regMr(this->send, this->data, -1, abi::kPtrHost, &mhandle), 4);
  }
}

TYPED_TEST(NetTable, TheFirstDeregistrationIsTheFence) {
  const std::string base = std::to_string((std::uintptr_t)this->data);
  for (const auto& [comm, name] : {std::pair{this->send, "send"}, std::pair{this->recv, "recv"}}) {
    void* mhandles[4];
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(this->net.regMr(comm, this->data, 64, abi::kPtrHost, &mhandles[i]), 0);
    }
    ASSERT_EQ(this->net.regMr(comm, this->data, 32, abi::kPtrHost, &mhandles[3]), 0);
    EXPECT_EQ(this->plugin.take_calls(), "");
    EXPECT_EQ(this->net.deregMr(comm, mhandles[1]), 0);
    EXPECT_EQ(this->plugin.take_calls(), "net::fence " + std::string(name) + " 64 " + base + "\n");
    EXPECT_EQ(this->net.deregMr(comm, mhandles[0]), 0);
    EXPECT_EQ(this->plugin.take_calls(), "");  // the memory may be gone already
    // In use again: the next deregistration is a fence again.
    ASSERT_EQ(this->net.regMr(comm, this->data, 64, abi::kPtrHost, &mhandles[0]), 0);
    EXPECT_EQ(this->net.deregMr(comm, mhandles[0]), 0);
    EXPECT_EQ(this->net.deregMr(comm, mhandles[2]), 0);
    EXPECT_EQ(this->net.deregMr(comm, mhandles[3]), 0);
    EXPECT_EQ(this->plugin.take_calls(), "net::fence " + std::string(name) + " 64 " + base +
                                             "\nnet::fence " + name + " 32 " + base + "\n");
    EXPECT_EQ(this->net.deregMr(comm, nullptr), 0);
  }
}

TYPED_TEST(NetTable, LeavesOutWhatAHostPluginDoesNotHave) {
  if constexpr (requires { this->net.regMrDmaBuf; }) {
    EXPECT_EQ(this->net.regMrDmaBuf, nullptr);
  }
  if constexpr (requires { this->net.getDeviceMr; }) {
    EXPECT_EQ(this->net.getDeviceMr, nullptr);
  }
  if constexpr (requires { this->net.irecvConsumed; }) {
    EXPECT_EQ(this->net.irecvConsumed, nullptr);
  }
  if constexpr (requires { this->net.makeVDevice; }) {
    EXPECT_EQ(this->net.makeVDevice, nullptr);
  }
  if constexpr (requires { this->net.setNetAttr; }) {
    EXPECT_EQ(this->net.setNetAttr, nullptr);
  }
}

}  // namespace
}  // namespace riffle::net_test
