// This machine's own devices.
#include "plugin/transport/device/device.h"

#include "test/plugin/transport/transport_harness.h"

namespace riffle::device_test {
namespace {

TEST(Device, LoopbackBecauseThisTestAskedForIt) {
  const auto& all = devices(settings().devices);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "riffle0");
  ASSERT_EQ(all[0].addresses.size(), 1u);
  EXPECT_EQ(all[0].addresses[0].interface, "lo");
  EXPECT_EQ(all[0].addresses[0].address, "127.0.0.1");
  EXPECT_GE(all[0].speed_mbps, 1000);
  EXPECT_EQ(&devices(settings().devices), &all);  // pointers into it stay valid
}

}  // namespace
}  // namespace riffle::device_test
