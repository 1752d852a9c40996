// The strict plugin itself: that it ends a process which breaks the contract, or the other tests of
// this folder would show nothing.
#include "plugin/abi/net.h"
#include "test/wire/rig.h"

namespace riffle::wire_strictness_test {
namespace {

using Table = abi::NetV12;

class Strict : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RIFFLE_TEST_EMULATED") != nullptr) {
      GTEST_SKIP() << "a program under qemu-user cannot start itself anew";
    }
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    net = wire::symbol<Table>(wire::loaded(wire::strict_library(12)), "ncclNetPlugin_v12");
  }

  void open() {
    ASSERT_EQ(wire::init(*net, &context), 0);
    ASSERT_EQ(net->listen(context, 0, handle, &listener), 0);
    ASSERT_EQ(net->connect(context, 0, handle, &send, nullptr), 0);
    ASSERT_EQ(net->accept(listener, &recv, nullptr), 0);
    ASSERT_EQ(net->regMr(send, data, sizeof data, abi::kPtrHost, &send_region), 0);
    ASSERT_EQ(net->regMr(recv, data, sizeof data, abi::kPtrHost, &recv_region), 0);
  }
  void* isend(std::size_t size, void* region) {
    void* request = nullptr;
    EXPECT_EQ(net->isend(send, data, size, 1, region, nullptr, &request), 0);
    return request;
  }
  void* irecv(std::size_t size, int n = 1) {
    std::vector<void*> at(static_cast<std::size_t>(n), data), regions(at.size(), recv_region);
    std::vector<std::size_t> sizes(at.size(), size);
    std::vector<int> tags(at.size(), 1);
    void* request = nullptr;
    EXPECT_EQ(net->irecv(recv, n, at.data(), sizes.data(), tags.data(), regions.data(), nullptr,
                         &request),
              0);
    return request;
  }
  void test(void* request) {
    int done = 0, size = 0;
    for (int i = 0; i < 1000 && done == 0; ++i) ASSERT_EQ(net->test(request, &done, &size), 0);
  }

  const Table* net = nullptr;
  void *context = nullptr, *listener = nullptr, *send = nullptr, *recv = nullptr;
  void *send_region = nullptr, *recv_region = nullptr;
  char handle[128] = {};
  char data[256] = {};
};

#define RIFFLE_VIOLATES(what, ...) \
  EXPECT_DEATH(([&] {              \
                 open();           \
                 __VA_ARGS__;      \
               }()),               \
               "strict plugin: " what)

TEST_F(Strict, OrderOfCalls) {
  int count = 0;
  EXPECT_DEATH((void)net->devices(&count), "strict plugin: a call before init");
  RIFFLE_VIOLATES("an unknown context", (void)net->listen(data, 0, handle, &listener));
  RIFFLE_VIOLATES("finalize before closeListen", (void)net->finalize(context));
  RIFFLE_VIOLATES("a second accept", (void)net->accept(listener, &recv, nullptr));
  RIFFLE_VIOLATES("listen on a device", (void)net->listen(context, 2, handle, &listener));
  RIFFLE_VIOLATES("a connection is closed before its regions", (void)net->closeSend(send));
}

TEST_F(Strict, Objects) {
  RIFFLE_VIOLATES("a connection of the other direction", (void)net->closeRecv(send));
  RIFFLE_VIOLATES("an unknown memory handle", isend(8, recv_region));
  RIFFLE_VIOLATES("an unknown memory handle", (void)net->deregMr(send, data));
  RIFFLE_VIOLATES("an unknown request", test(data));
  RIFFLE_VIOLATES("an unknown connection", (void)net->deregMr(send, send_region),
                  (void)net->closeSend(send), isend(8, send_region));
  RIFFLE_VIOLATES("an unknown listener", (void)net->closeListen(listener),
                  (void)net->closeListen(listener));
}

TEST_F(Strict, Transfers) {
  RIFFLE_VIOLATES("memory outside its region", isend(sizeof data + 1, send_region));
  RIFFLE_VIOLATES("a group of receives beyond maxRecvs", irecv(8, 9));
  RIFFLE_VIOLATES("a message is larger than its receive", isend(9, send_region), test(irecv(8)));
  RIFFLE_VIOLATES("more requests than NCCL may have", for (int i = 0; i <= 32; ++i) irecv(8));
  RIFFLE_VIOLATES("a test of a request that was done", void* sent = isend(8, send_region);
                  test(sent), test(sent));
  RIFFLE_VIOLATES("irecvConsumed of what was not received",
                  (void)net->irecvConsumed(recv, 1, irecv(8)));
}

}  // namespace
}  // namespace riffle::wire_strictness_test
