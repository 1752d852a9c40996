// PROFILER's tables from v4 on: their events arrive where COLLNET's calls are looked up, nothing
// that NCCL may still pass later does harm, and the mask asks for no more than is needed.
#include "plugin/abi/profiler.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "plugin/abi/constants.h"
#include "test/abi/fake_plugin.h"

namespace riffle {

template <>
inline constexpr const char* kSymbol<abi::ProfilerV4> = "ncclProfiler_v4";
template <>
inline constexpr const char* kSymbol<abi::ProfilerV5> = "ncclProfiler_v5";
template <>
inline constexpr const char* kSymbol<abi::ProfilerV6> = "ncclProfiler_v6";

}  // namespace riffle

namespace riffle::profiler_test {
namespace {

constexpr int kRanks = 2;
constexpr std::size_t kRegion = 16 * 2 * 32768;  // two channels, slots of one chunk
constexpr std::size_t kChunk = 32768;

struct Seen {
  unsigned long long sure = 0, unsure = 0;
};
Seen last;  // what the plugin said when a coll object ended; it counts on from test to test

void logger(int, unsigned long, const char*, int, const char* format, ...) {
  std::array<char, 1024> text;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  const std::string line = text.data();
  const std::size_t at = line.find("identity of all-reduce calls: sure of ");
  if (at == std::string::npos) return;
  std::sscanf(line.c_str() + at, "identity of all-reduce calls: sure of %llu, not of %llu",
              &last.sure, &last.unsure);
}

template <class Table>
struct EventOf;
template <class Event>
struct EventOf<abi::ProfilerTableV5<Event>> {
  using Type = Event;
};
template <>
struct EventOf<abi::ProfilerV4> {
  using Type = abi::ProfilerEventV4;
};

template <class Table>
class ProfilerTable : public FakePluginTest {
 protected:
  using Event = typename EventOf<Table>::Type;

  static void SetUpTestSuite() { setenv("RIFFLE_IDENTITY", "on", 1); }
  void SetUp() override {
    FakePluginTest::SetUp();
    ASSERT_EQ(collnet.init(&collnet_context, 5, logger), 0);
    ASSERT_EQ(collnet.listen(collnet_context, 0, handle, &listener), 0);
    void* blobs[kRanks] = {handle, handle};
    ASSERT_EQ(collnet.connect(blobs, kRanks, 0, listener, &coll), 0);
    ASSERT_EQ(collnet.regMr(coll, region(), kRegion, abi::kPtrHost, &mr), 0);
    if constexpr (std::is_same_v<Table, abi::ProfilerV4>) {
      ASSERT_EQ(table.init(&context, &mask, "name", 5, kRanks, kRanks, 0, logger), 0);
    } else {
      ASSERT_EQ(table.init(&context, 5, &mask, "name", kRanks, kRanks, 0, logger), 0);
    }
    EXPECT_EQ(mask, abi::kProfileProxyOp);
    EXPECT_NE(context, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(table.finalize(context), 0);
    sleep();  // this thread is used again
    EXPECT_EQ(collnet.deregMr(coll, mr), 0);
    const Seen before = last;
    EXPECT_EQ(collnet.closeColl(coll), 0);
    EXPECT_EQ(collnet.closeListen(listener), 0);
    EXPECT_EQ(collnet.finalize(collnet_context), 0);
    EXPECT_EQ(last.sure - before.sure, sure);
    EXPECT_EQ(last.unsure - before.unsure, unsure);
    FakePluginTest::TearDown();
  }

  static char* region() {
    static std::array<char, kRegion> memory;
    return memory.data();
  }
  void* start(Event event) {
    void* made = &event;
    EXPECT_EQ(table.startEvent(context, &made, &event), 0);
    return made;
  }
  // An all-reduce of two steps on two channels.
  void* announce(void* parent = nullptr) {
    Event event{};
    event.type = abi::kProfileColl;
    event.parentObj = parent;
    event.coll.seqNumber = sequence++;
    event.coll.func = "AllReduce";
    event.coll.algo = "COLLNET_CHAIN";
    event.coll.proto = "SIMPLE";
    event.coll.datatype = "ncclFloat32";
    event.coll.sendBuff = region();
    event.coll.recvBuff = region();
    event.coll.count = 3 * kChunk / 4;
    void* made = start(event);
    EXPECT_EQ(table.stopEvent(made), 0);
    return made;
  }
  void take_up(void* parent) {
    for (int i = 0; i < 4; ++i) {
      Event event{};
      event.type = abi::kProfileProxyOp;
      event.parentObj = parent;
      event.proxyOp.channelId = static_cast<std::uint8_t>(i / 2);
      event.proxyOp.peer = kRanks;
      event.proxyOp.nSteps = 2;
      event.proxyOp.chunkSize = kChunk;
      void* made = start(event);
      EXPECT_EQ(made, nullptr);  // NCCL 2.30 stops it long after
      EXPECT_EQ(table.stopEvent(made), 0);
    }
  }
  void sleep() {
    Event event{};
    event.type = abi::kProfileProxyCtrl;
    void* made = start(event);
    abi::ProfilerStateV4 state{};
    EXPECT_EQ(table.recordEventState(made, abi::kProxyCtrlSleep, &state), 0);
    EXPECT_EQ(table.recordEventState(made, abi::kProxyCtrlWakeup, &state), 0);
    EXPECT_EQ(table.stopEvent(made), 0);
  }
  void make_calls() {
    for (std::size_t step = 0; step < 2; ++step) {
      char* send = region() + step * 2 * kChunk;
      void* request = nullptr;
      EXPECT_EQ(collnet.iallreduce(coll, send, send + kRegion / 2, 2 * kChunk / 4, 7, 0, nullptr,
                                   nullptr, &request),
                0);
      EXPECT_NE(request, nullptr);
    }
  }

  const Table& table = FakePlugin::get().table<Table>();
  const abi::CollNetV11& collnet = FakePlugin::get().table<abi::CollNetV11>();
  void *context = nullptr, *collnet_context = nullptr, *listener = nullptr, *coll = nullptr,
       *mr = nullptr;
  char handle[128] = {};
  int mask = -1;
  std::uint64_t sequence = 0;
  unsigned long long sure = 0, unsure = 0;  // expected
};
using Tables = ::testing::Types<abi::ProfilerV4, abi::ProfilerV5, abi::ProfilerV6>;
TYPED_TEST_SUITE(ProfilerTable, Tables);

TYPED_TEST(ProfilerTable, TellsWhatCallsAre) {
  for (int i = 0; i < 3; ++i) {
    this->take_up(this->announce());
    this->make_calls();
  }
  this->sure = 6;
}

TYPED_TEST(ProfilerTable, RefusedCallsCountOnce) {
  this->take_up(this->announce());
  this->plugin.fail(kFailNotYet);
  void* request = this;
  EXPECT_EQ(this->collnet.iallreduce(this->coll, this->region(), this->region() + kRegion / 2,
                                     2 * kChunk / 4, 7, 0, nullptr, nullptr, &request),
            0);
  EXPECT_EQ(request, nullptr);
  this->plugin.fail(kFailNot);
  this->make_calls();
  this->sure = 2;
}

// Doubt lasts until NCCL says that the thread sleeps, which it is asked to say only meanwhile.
TYPED_TEST(ProfilerTable, DoubtEndsWithTheThreadsSleep) {
  this->take_up(this->announce());
  this->make_calls();
  this->make_calls();  // nobody announced these
  EXPECT_EQ(this->mask, abi::kProfileProxyOp | abi::kProfileProxyCtrl);
  this->take_up(this->announce());
  this->make_calls();
  this->sleep();
  EXPECT_EQ(this->mask, abi::kProfileProxyOp);
  this->take_up(this->announce());
  this->make_calls();
  this->sure = 4;
  this->unsure = 4;
}

TYPED_TEST(ProfilerTable, CapturedGraphsMakeUnsure) {
  if constexpr (requires(typename TestFixture::Event e) { e.collApi; }) {
    typename TestFixture::Event event{};
    event.type = abi::kProfileCollApi;
    event.collApi.graphCaptured = true;
    void* api = this->start(event);
    this->take_up(this->announce(api));
    this->make_calls();
    this->unsure = 2;
  }
}

TYPED_TEST(ProfilerTable, LateAndForeignHandlesDoNoHarm) {
  void* parent = this->announce();
  this->take_up(parent);
  this->make_calls();
  abi::ProfilerStateV4 state{};
  for (void* any : {static_cast<void*>(nullptr), parent, static_cast<void*>(this)}) {
    EXPECT_EQ(this->table.stopEvent(any), 0);
    EXPECT_EQ(this->table.recordEventState(any, abi::kProxyOpInProgress, &state), 0);
  }
  typename TestFixture::Event unknown{};
  unknown.type = 128;
  EXPECT_EQ(this->start(unknown), nullptr);
  EXPECT_EQ(this->table.startEvent(this->context, nullptr, &unknown), 0);
  EXPECT_EQ(this->table.startEvent(nullptr, nullptr, nullptr), 0);
  // An end in the middle, and events that come after it.
  void* next = this->announce();
  EXPECT_EQ(this->table.finalize(this->context), 0);
  this->take_up(next);
  this->make_calls();
  this->sure = 2;
  this->unsure = 2;
}

}  // namespace
}  // namespace riffle::profiler_test
