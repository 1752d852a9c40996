// Interface names in NCCL's syntax.
#include "plugin/transport/device/interface_filter.h"

#include <gtest/gtest.h>

namespace riffle::interface_filter_test {
namespace {

TEST(InterfaceFilter, NcclsSyntax) {
  const auto accepts = [](const char* rule, const char* name) {
    return InterfaceFilter(rule).accepts(name);
  };
  EXPECT_TRUE(accepts("eth", "eth0"));
  EXPECT_TRUE(accepts("ib,eth", "eth0"));
  EXPECT_FALSE(accepts("eth", "veth0"));
  EXPECT_TRUE(accepts("=eth0", "eth0"));
  EXPECT_FALSE(accepts("=eth0", "eth01"));
  EXPECT_FALSE(accepts("=eth", "eth0"));
  EXPECT_TRUE(accepts("=eth0,ib0", "ib0"));
  EXPECT_FALSE(accepts("^docker,lo", "docker0"));
  EXPECT_TRUE(accepts("^docker,lo", "eth0"));
  EXPECT_FALSE(accepts("^=eth0", "eth0"));
  EXPECT_TRUE(accepts("^=eth0", "eth01"));
  EXPECT_TRUE(accepts("eth0:1234", "eth0"));
  EXPECT_TRUE(accepts("", "anything"));
  EXPECT_TRUE(accepts("=,", "anything"));
  EXPECT_FALSE(accepts("^", "anything"));
}

TEST(InterfaceFilter, KnowsWhetherItSaysWhatNotToUse) {
  EXPECT_TRUE(InterfaceFilter("^=eth0").excludes());
  EXPECT_FALSE(InterfaceFilter("=eth0").excludes());
  EXPECT_FALSE(InterfaceFilter("").excludes());
}

}  // namespace
}  // namespace riffle::interface_filter_test
