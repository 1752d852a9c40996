// COLLNET's table, every version: arguments arrive at the service as they should and NCCL's
// conventions hold.
#include <gtest/gtest.h>

#include <string>

#include "test/abi/drive.h"

namespace riffle::collnet_test {
namespace {

template <class Table>
class CollNetTable : public FakePluginTest {
 protected:
  void SetUp() override {
    FakePluginTest::SetUp();
    ASSERT_EQ(drive::init(table, &context), 0);
    ASSERT_EQ(drive::listen(table, context, 1, handles[1], &listener), 0);
    connect_calls = plugin.take_calls();
    void* blobs[2] = {handles[0], handles[1]};
    ASSERT_EQ(table.connect(blobs, 2, 1, listener, &coll), 0);
    ASSERT_NE(coll, nullptr);
    connect_calls += plugin.take_calls();
  }
  void TearDown() override {
    EXPECT_EQ(table.closeListen(listener), 0);
    EXPECT_EQ(table.closeColl(coll), 0);
    EXPECT_EQ(drive::finalize(table, context), 0);
    FakePluginTest::TearDown();
  }

  const Table& table = FakePlugin::get().table<Table>();
  void *context = nullptr, *listener = nullptr, *coll = nullptr, *request = nullptr;
  char handles[2][128] = {{7}, {}};
  std::string connect_calls;
};
TYPED_TEST_SUITE(CollNetTable, CollNetTables);

void* address(std::uintptr_t value) { return reinterpret_cast<void*>(value); }

TYPED_TEST(CollNetTable, ListensAndConnects) {
  const std::uint64_t id = drive::kHasContext<TypeParam> ? drive::kCommId : 0;
  EXPECT_NE(this->connect_calls.find("coll::listen 1 " + std::to_string(id) + "\n"),
            std::string::npos);
  EXPECT_NE(this->connect_calls.find("coll::connect 2 1 7 90\n"), std::string::npos);  // 90 = 0x5a
}

TYPED_TEST(CollNetTable, ClosesTheListenerOnlyAfterAnError) {
  EXPECT_EQ(this->connect_calls.find("coll::close listener"), std::string::npos);
  void* blobs[2] = {this->handles[0], this->handles[1]};
  for (const Failure how : {kFailRemote, kFailBadAlloc}) {
    void* listener = nullptr;
    ASSERT_EQ(drive::listen(this->table, this->context, 0, this->handles[1], &listener), 0);
    this->plugin.fail(how);
    void* out = address(1);
    EXPECT_NE(this->table.connect(blobs, 2, 1, listener, &out), 0);
    EXPECT_EQ(out, nullptr);
    this->plugin.fail(kFailNot);
    EXPECT_NE(this->plugin.take_calls().find("coll::close listener\n"), std::string::npos);
  }
  void* listener = nullptr;
  ASSERT_EQ(drive::listen(this->table, this->context, 0, this->handles[1], &listener), 0);
  EXPECT_EQ(this->table.connect(blobs, 0, 0, listener, &listener), 4);
  EXPECT_NE(this->plugin.take_calls().find("coll::close listener\n"), std::string::npos);
}

TYPED_TEST(CollNetTable, SteppingAsideIsNoError) {
  this->plugin.fail(kFailNotYet);
  void* out = address(1);
  void* blobs[2] = {this->handles[0], this->handles[1]};
  EXPECT_EQ(this->table.connect(blobs, 2, 1, this->listener, &out), 0);
  EXPECT_EQ(out, nullptr);
  EXPECT_TRUE(this->plugin.take_lines().empty());
}

TYPED_TEST(CollNetTable, ShowsTheDevicesOfNet) {
  drive::PropertiesOf<TypeParam> p;
  ASSERT_EQ(this->table.getProperties(1, &p), 0);
  EXPECT_STREQ(p.name, "riffle1");
  EXPECT_EQ(p.ptrSupport, abi::kPtrHost);
  if constexpr (requires { p.vProps; }) {
    EXPECT_EQ(p.vProps.devs[0], 1);
  }
  int count = 0;
  ASSERT_EQ(this->table.devices(&count), 0);
  EXPECT_EQ(count, 2);
}

TYPED_TEST(CollNetTable, ReducesAll) {
  ASSERT_EQ(this->table.iallreduce(this->coll, address(0x1000), address(0x2000), 16, 9, 2, nullptr,
                                   nullptr, &this->request),
            0);
  EXPECT_NE(this->request, nullptr);
  EXPECT_EQ(this->plugin.take_calls(), "coll::all_reduce 1 16 9 2 4096 8192\n");
  int done = -1, size = -1;
  EXPECT_EQ(this->table.test(this->request, &done, &size), 0);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(this->table.test(this->request, &done, nullptr), 0);
  // A full queue, types and operators that do not exist.
  this->plugin.fail(kFailNotYet);
  this->request = address(1);
  EXPECT_EQ(this->table.iallreduce(this->coll, nullptr, nullptr, 16, 9, 2, nullptr, nullptr,
                                   &this->request),
            0);
  EXPECT_EQ(this->request, nullptr);
  this->plugin.fail(kFailNot);
  for (const auto& [type, op] : {std::pair{12, 0}, {-1, 0}, {7, 4}, {7, -1}}) {
    this->request = address(1);
    EXPECT_EQ(this->table.iallreduce(this->coll, nullptr, nullptr, 16, type, op, nullptr, nullptr,
                                     &this->request),
              4);
    EXPECT_EQ(this->request, nullptr);
  }
}

TYPED_TEST(CollNetTable, GathersAndScatters) {
  if constexpr (drive::kHasGather<TypeParam>) {
    ASSERT_EQ(drive::iallgather(this->table, this->coll, 1, &this->request), 0);
    EXPECT_EQ(this->plugin.take_calls(), "coll::all_gather 32 16 64 4096 8192\n");
    ASSERT_EQ(drive::ireducescatter(this->table, this->coll, 1, &this->request), 0);
    EXPECT_EQ(this->plugin.take_calls(), "coll::reduce_scatter 32 16 64 7 0 4096 8192\n");
    EXPECT_EQ(drive::iallgather(this->table, this->coll, 2, &this->request), 4);
    EXPECT_EQ(this->request, nullptr);
    EXPECT_EQ(drive::ireducescatter(this->table, this->coll, 0, &this->request), 4);
    EXPECT_EQ(drive::ireducescatter(this->table, this->coll, 1, &this->request, 12), 4);
  }
}

TYPED_TEST(CollNetTable, SaysWhatItReduces) {
  for (int type = -1; type <= 12; ++type) {
    for (int op = -1; op <= 4; ++op) {
      int supported = -1;
      EXPECT_EQ(this->table.reduceSupport(type, op, &supported), 0);
      EXPECT_EQ(supported, type >= 0 && type < 12 && op >= 0 && op < 4) << type << " " << op;
    }
  }
}

TYPED_TEST(CollNetTable, TheFirstDeregistrationIsTheFence) {
  // As NCCL does it: the region once per channel for receiving and once for sending.
  std::vector<void*> mhandles(16);
  for (void*& mhandle : mhandles) {
    ASSERT_EQ(this->table.regMr(this->coll, address(0x10000), 1 << 20, abi::kPtrHost, &mhandle), 0);
  }
  this->plugin.take_calls();
  for (void* mhandle : mhandles) EXPECT_EQ(this->table.deregMr(this->coll, mhandle), 0);
  EXPECT_EQ(this->plugin.take_calls(), "coll::fence 1048576 65536\n");
  void* mhandle = nullptr;
  EXPECT_EQ(this->table.regMr(this->coll, address(0x10000), 64, abi::kPtrCuda, &mhandle), 4);
}

TYPED_TEST(CollNetTable, FlushIsNotNecessary) {
  this->request = address(1);
  EXPECT_EQ(this->table.iflush(this->coll, address(0x1000), 8, nullptr, &this->request), 0);
  EXPECT_EQ(this->request, nullptr);
}

}  // namespace
}  // namespace riffle::collnet_test
