// The C border: whatever goes wrong behind it, NCCL gets a result code between 1 and 6, one log
// line says why, and what NCCL reads afterwards is written. For every function of every version.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "test/abi/drive.h"

namespace riffle::border_test {
namespace {

const std::map<Failure, int> kExpectedCodes = {
    {kFailBadAlloc, 2},        {kFailInt, 3},    {kFailInvariant, 3}, {kFailRuntime, 3},
    {kFailInvalidArgument, 4}, {kFailSystem, 2}, {kFailRemote, 6},    {kFailTimeout, 6},
    {kFailInternal, 3},
};

bool throws(Failure how) {
  return how == kFailBadAlloc || how == kFailInt || how == kFailInvariant || how == kFailRuntime;
}

// Transfers hear of a broken connection that somebody has warned of already.
bool is_known(const std::string& what, Failure how) {
  static const std::set<std::string> transfers = {"NET isend",          "NET irecv",
                                                  "NET test",           "COLLNET iallreduce",
                                                  "COLLNET iallgather", "COLLNET ireducescatter",
                                                  "COLLNET test"};
  return (how == kFailRemote || how == kFailTimeout) && transfers.contains(what);
}

// Whether the service behind a function returns a Status, so that it can fail without throwing.
enum Service { kReturnsStatus, kThrowsOnly };

class BorderTest : public FakePluginTest {
 protected:
  // Runs `call` under every failure, each time after `prepare` under none.
  void expect_codes(
      const std::string& what, Service service, const std::function<int()>& call,
      const std::function<void()>& prepare = [] {}) {
    for (const auto& [how, code] : kExpectedCodes) {
      if (!throws(how) && service == kThrowsOnly) continue;
      prepare();
      plugin.take_lines();
      plugin.fail(how);
      EXPECT_EQ(call(), code) << what << " under failure " << how;
      plugin.fail(kFailNot);
      const std::vector<std::string> lines = plugin.take_lines();
      ASSERT_EQ(lines.size(), is_known(what, how) ? 0u : 1u)
          << what << " under failure " << how << (lines.empty() ? "" : ": " + lines[0]);
      if (lines.empty()) continue;
      EXPECT_NE(lines[0].find(what), std::string::npos) << lines[0];
    }
  }

  // The same for a call whose output, stale before, must be null afterwards.
  void expect_codes_and_null(const std::string& what, const std::function<int(void**)>& call) {
    expect_codes(what, kReturnsStatus, [&] {
      void* out = reinterpret_cast<void*>(0xdead);
      const int code = call(&out);
      EXPECT_EQ(out, nullptr) << what;
      return code;
    });
  }

  void expect_codes_and_zero(const std::string& what, Service service,
                             const std::function<int(int*)>& call) {
    expect_codes(what, service, [&] {
      int out = -1;
      const int code = call(&out);
      EXPECT_EQ(out, 0) << what;
      return code;
    });
  }

  // What NET and COLLNET have in common.
  template <class Table>
  void check_start(const std::string& interface, const Table& table) {
    expect_codes_and_zero(interface + " devices", kReturnsStatus,
                          [&](int* out) { return table.devices(out); });
    expect_codes(interface + " getProperties", kReturnsStatus, [&] {
      drive::PropertiesOf<Table> properties;
      return table.getProperties(0, &properties);
    });
    char handle[128] = {};
    expect_codes_and_null(interface + " listen", [&](void** out) {
      return drive::listen(table, nullptr, 0, handle, out);
    });
  }
};

template <class Table>
class NetBorder : public BorderTest {};
TYPED_TEST_SUITE(NetBorder, NetTables);

// NCCL 2.29 and 2.30 hand the context to their own RMA plugin, which reads and writes it there.
TYPED_TEST(NetBorder, TheContextBeginsWithTheTrafficClass) {
  if constexpr (drive::kHasContext<TypeParam>) {
    const TypeParam& net = this->plugin.template table<TypeParam>();
    void* context = nullptr;
    ASSERT_EQ(drive::init(net, &context), 0);
    auto* const config = static_cast<abi::NetCommConfig*>(context);
    EXPECT_EQ(config->trafficClass, drive::kTrafficClass);
    config->trafficClass = 7;
    char handle[128] = {};
    void* listener = nullptr;
    ASSERT_EQ(drive::listen(net, context, 0, handle, &listener), 0);
    EXPECT_EQ(net.closeListen(listener), 0);
    EXPECT_EQ(drive::finalize(net, context), 0);
  }
}

TYPED_TEST(NetBorder, TurnsEveryFailureIntoACode) {
  const TypeParam& net = this->plugin.template table<TypeParam>();
  void* context = nullptr;
  ASSERT_EQ(drive::init(net, &context), 0);
  this->expect_codes("NET init", kReturnsStatus, [&] {
    void* fresh = reinterpret_cast<void*>(0xdead);
    const int code = drive::init(net, &fresh);
    // NCCL 2.28 may free a context that a failed init leaves.
    if (drive::kHasContext<TypeParam>) {
      EXPECT_EQ(fresh, nullptr);
    }
    return code;
  });
  this->check_start("NET", net);

  char handle[128] = {}, data[64] = {};
  void *listener = nullptr, *send = nullptr, *recv = nullptr, *request = nullptr;
  ASSERT_EQ(drive::listen(net, context, 0, handle, &listener), 0);
  ASSERT_EQ(drive::connect(net, context, 0, handle, &send), 0);
  ASSERT_EQ(drive::accept(net, listener, &recv), 0);
  this->expect_codes_and_null(
      "NET connect", [&](void** out) { return drive::connect(net, context, 0, handle, out); });
  this->expect_codes_and_null("NET accept",
                              [&](void** out) { return drive::accept(net, listener, out); });
  this->expect_codes_and_null(
      "NET isend", [&](void** out) { return drive::isend(net, send, data, sizeof data, 3, out); });
  this->expect_codes_and_null("NET irecv", [&](void** out) {
    const std::size_t size = sizeof data;
    void* buffer = data;
    int tag = 3;
    return drive::irecv(net, recv, 1, &buffer, &size, &tag, out);
  });
  ASSERT_EQ(drive::isend(net, send, data, sizeof data, 3, &request), 0);
  this->expect_codes_and_zero("NET test", kReturnsStatus,
                              [&](int* out) { return net.test(request, out, nullptr); });
  void* mhandle = nullptr;
  this->expect_codes(
      "NET deregMr", kThrowsOnly, [&] { return net.deregMr(send, mhandle); },
      [&] { ASSERT_EQ(net.regMr(send, data, sizeof data, abi::kPtrHost, &mhandle), 0); });
  // A close that fails still ends the object.
  this->expect_codes("NET closeListen", kThrowsOnly, [&] { return net.closeListen(listener); });
  void* doomed = nullptr;
  this->expect_codes(
      "NET closeSend", kThrowsOnly, [&] { return net.closeSend(doomed); },
      [&] { ASSERT_EQ(drive::connect(net, context, 0, handle, &doomed), 0); });
  this->expect_codes(
      "NET closeRecv", kThrowsOnly, [&] { return net.closeRecv(doomed); },
      [&] { ASSERT_EQ(drive::accept(net, listener, &doomed), 0); });
  EXPECT_EQ(net.closeSend(send), 0);
  EXPECT_EQ(net.closeRecv(recv), 0);
  EXPECT_EQ(drive::finalize(net, context), 0);
}

template <class Table>
class CollNetBorder : public BorderTest {};
TYPED_TEST_SUITE(CollNetBorder, CollNetTables);

TYPED_TEST(CollNetBorder, TurnsEveryFailureIntoACode) {
  const TypeParam& table = this->plugin.template table<TypeParam>();
  void* context = nullptr;
  ASSERT_EQ(drive::init(table, &context), 0);
  this->check_start("COLLNET", table);
  this->expect_codes_and_zero("COLLNET reduceSupport", kThrowsOnly,
                              [&](int* out) { return table.reduceSupport(7, 0, out); });

  char handle[128] = {}, data[64] = {};
  void *listener = nullptr, *coll = nullptr, *request = nullptr;
  void* handles[2] = {handle, handle};
  ASSERT_EQ(drive::listen(table, context, 0, handle, &listener), 0);
  ASSERT_EQ(table.connect(handles, 2, 0, listener, &coll), 0);
  this->expect_codes_and_null(
      "COLLNET connect", [&](void** out) { return table.connect(handles, 2, 0, listener, out); });
  this->expect_codes_and_null("COLLNET iallreduce", [&](void** out) {
    return table.iallreduce(coll, data, data, 16, 7, 0, nullptr, nullptr, out);
  });
  if constexpr (drive::kHasGather<TypeParam>) {
    this->expect_codes_and_null("COLLNET iallgather",
                                [&](void** out) { return drive::iallgather(table, coll, 1, out); });
    this->expect_codes_and_null("COLLNET ireducescatter", [&](void** out) {
      return drive::ireducescatter(table, coll, 1, out);
    });
  }
  ASSERT_EQ(table.iallreduce(coll, data, data, 16, 7, 0, nullptr, nullptr, &request), 0);
  this->expect_codes_and_zero("COLLNET test", kReturnsStatus,
                              [&](int* out) { return table.test(request, out, nullptr); });
  void* mhandle = nullptr;
  this->expect_codes(
      "COLLNET deregMr", kThrowsOnly, [&] { return table.deregMr(coll, mhandle); },
      [&] { ASSERT_EQ(table.regMr(coll, data, sizeof data, abi::kPtrHost, &mhandle), 0); });
  this->expect_codes("COLLNET closeListen", kThrowsOnly,
                     [&] { return table.closeListen(listener); });
  void* doomed = nullptr;
  this->expect_codes(
      "COLLNET closeColl", kThrowsOnly, [&] { return table.closeColl(doomed); },
      [&] { ASSERT_EQ(table.connect(handles, 2, 0, listener, &doomed), 0); });
  EXPECT_EQ(table.closeColl(coll), 0);
  EXPECT_EQ(drive::finalize(table, context), 0);
}

}  // namespace
}  // namespace riffle::border_test
