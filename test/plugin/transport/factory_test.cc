// Transports by name, and what the border makes of the knobs about them.
#include "plugin/transport/factory.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "plugin/config/knob_table.h"
#include "plugin/entry/transport_options.h"

namespace riffle::factory_test {
namespace {

TEST(Factory, MakesTheTransportWithItsOptions) {
  TransportOptions options;
  options.streams = 3;
  const auto made = make_transport(options);
  ASSERT_TRUE(made) << made.status().message();
  EXPECT_EQ((*made)->options().streams, 3);
}

TEST(Factory, AnUnknownNameIsRefusedWithThoseThatThereAre) {
  TransportOptions options;
  options.name = "pigeons";
  const auto made = make_transport(options);
  ASSERT_FALSE(made);
  EXPECT_NE(made.status().message().find("'pigeons'"), std::string::npos);
  EXPECT_NE(made.status().message().find("accepted: tcp"), std::string::npos);
}

class TransportOptionsOfKnobs : public ::testing::Test {
 protected:
  ~TransportOptionsOfKnobs() override {
    ::unsetenv("NCCL_SOCKET_IFNAME");
    ::unsetenv("NCCL_SOCKET_FAMILY");
  }
  Config config_ = default_config();
};

TEST_F(TransportOptionsOfKnobs, CarryEachKnobInItsUnit) {
  config_.threads = "4";
  config_.cpus = "2-5";
  config_.streams = 7;
  config_.congestion = "reno";
  config_.payload_crc = true;
  config_.peer_timeout_s = 11;
  config_.connect_timeout_s = 12;
  const TransportOptions options = transport_options(config_);
  EXPECT_EQ(options.name, "tcp");
  EXPECT_EQ(options.threads.count, 4);
  EXPECT_EQ(options.threads.cpus, "2-5");
  EXPECT_EQ(options.streams, 7);
  EXPECT_EQ(options.congestion, "reno");
  EXPECT_TRUE(options.payload_crc);
  EXPECT_EQ(options.peer_timeout_ns, 11'000'000'000u);
  EXPECT_EQ(options.connect_timeout_ns, 12'000'000'000u);
}

TEST_F(TransportOptionsOfKnobs, TakeNcclsSettingsWhereOursAreEmpty) {
  ::setenv("NCCL_SOCKET_IFNAME", "ib", 1);
  ::setenv("NCCL_SOCKET_FAMILY", "AF_INET6", 1);
  config_.socket_ifname.clear();
  config_.socket_family = "any";
  DeviceChoice choice = transport_options(config_).devices;
  EXPECT_EQ(choice.rule, "ib");
  EXPECT_EQ(choice.rule_source, "NCCL_SOCKET_IFNAME");
  EXPECT_EQ(choice.family, "ipv6");
  ::setenv("NCCL_SOCKET_IFNAME", "e", 1);  // NCCL wants two letters
  EXPECT_EQ(transport_options(config_).devices.rule, "");
  config_.socket_ifname = "eth";
  config_.socket_family = "ipv4";
  choice = transport_options(config_).devices;
  EXPECT_EQ(choice.rule, "eth");
  EXPECT_EQ(choice.rule_source, "RIFFLE_SOCKET_IFNAME");
  EXPECT_EQ(choice.family, "ipv4");
}

}  // namespace
}  // namespace riffle::factory_test
