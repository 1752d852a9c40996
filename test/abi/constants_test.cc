// Compares every number in plugin/abi/constants.h and plugin/kernels/types.h with the golden
// list. A golden constant that is neither compared nor named as out of scope fails the test; of a
// count that grew, the newest value is ours.
#include "plugin/abi/constants.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "plugin/abi/net_properties.h"
#include "plugin/collective/request.h"
#include "plugin/kernels/types.h"
#include "plugin/net/net_service.h"
#include "plugin/transport/base/handle.h"
#include "test/abi/golden.h"

namespace riffle::abi::constants_test {
namespace {

const std::map<std::string, long long>& declared() {
  static const std::map<std::string, long long> all = {
#define SAME(golden, ours) {#golden, static_cast<long long>(ours)},
#include "test/abi/constants.def"
#undef SAME
  };
  return all;
}

// Not part of what a NET, COLLNET, TUNER, PROFILER or ENV plugin sees.
const std::set<std::string> kOutOfScope = {
    // The application's API.
    "NCCL_UNIQUE_ID_BYTES", "NCCL_CONFIG_UNDEF_INT", "ncclScalarDevice", "ncclScalarHostImmediate",
    "ncclMaxRedOp",
    // Sizes of NCCL's own tables and old builds.
    "NCCL_NET_MAX_REQUESTS_V6", "NCCL_NUM_FUNCTIONS", "NCCL_NET_MAX_PLUGINS",
    "ncclProfileNumEvents",
    // Networks with a part on the device, and GPU-initiated ones.
    "NCCL_NET_MTU_SIZE", "NCCL_NET_DEVICE_GIN_PROXY", "NCCL_NET_DEVICE_GIN_GDAKI",
    "NCCL_NET_DEVICE_GIN_GPI", "NCCL_NET_MR_FLAG_FORCE_SO", "NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET",
    "NCCL_NET_SIGNAL_OP_INC", "NCCL_NET_SIGNAL_OP_ADD",
    // Events of NCCL's own networks.
    "NCCL_PROFILER_NET_IB_VER", "NCCL_PROFILER_NET_SOCKET_VER", "ncclProfileQp",
    "ncclProfileSocket",
    // Rows and columns of the tuner's constants, which we leave alone.
    "NCCL_HW_NVLINK", "NCCL_HW_PCI", "NCCL_HW_NET", "NCCL_VOLTA_COMPCAP_IDX",
    "NCCL_AMPERE_COMPCAP_IDX", "NCCL_HOPPER_COMPCAP_IDX", "NCCL_BLACKWELL_COMPCAP_IDX",
    "NCCL_TUNING_SCALE_1NODE", "NCCL_TUNING_SCALE_2NODES", "NCCL_TUNING_SCALE_4NODES"};

bool is_newer(const std::string& tag, const std::string& than) {  // "v2.30.7-1"
  const auto number = [](const std::string& t) {
    int major = 0, minor = 0, patch = 0;
    EXPECT_EQ(std::sscanf(t.c_str(), "v%d.%d.%d", &major, &minor, &patch), 3) << t;
    return (major * 1000 + minor) * 1000 + patch;
  };
  return number(tag) > number(than);
}

TEST(Constants, EveryGoldenConstantMatches) {
  std::map<std::string, golden::Row> newest;
  for (const golden::Row& row : golden::read("nccl-abi-constants.csv")) {
    if (row.at("visibility") == "internal") continue;  // of the core's sources, not of the ABI
    golden::Row& kept = newest[row.at("name")];
    if (kept.empty() || is_newer(row.at("last_tag"), kept.at("last_tag"))) kept = row;
  }
  for (const auto& [name, row] : newest) {
    const auto found = declared().find(name);
    if (found == declared().end()) {
      EXPECT_TRUE(kOutOfScope.contains(name)) << name << " is neither compared nor out of scope";
      continue;
    }
    EXPECT_FALSE(kOutOfScope.contains(name)) << name;
    EXPECT_EQ(found->second, std::stoll(row.at("value"))) << name;
  }
  for (const auto& [name, value] : declared()) {
    EXPECT_TRUE(newest.contains(name)) << name << " is not in the golden list";
  }
  for (const std::string& name : kOutOfScope) EXPECT_TRUE(newest.contains(name)) << name;
}

// Limits of the services that have to cover NCCL's.
TEST(Constants, ServicesCoverNcclsLimits) {
  EXPECT_EQ(kHandleBytes, static_cast<std::size_t>(kNetHandleBytes));
  EXPECT_GE(net::kMaxRequests, kNetMaxRequests);
  EXPECT_GE(coll::kMaxRequests, 8);  // 8 slots per group of channels; fewer than NCCL asks is legal
  EXPECT_EQ(kDataTypes, kNumDataTypes);
  EXPECT_LE(kDefaultMaxP2pBytes, kMaxNetSizeBytes);
  EXPECT_LE(kDefaultMaxCollBytes, kMaxNetSizeBytes);
}

}  // namespace
}  // namespace riffle::abi::constants_test
