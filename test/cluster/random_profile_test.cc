// Drawn networks are valid, differ in every way they are said to, and are the same everywhere.
#include "lab/cluster/random_profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lab/cluster/profile_file.h"

namespace riffle::cluster::random_profile_test {
namespace {

constexpr std::uint64_t kSeeds = 1000;

TEST(RandomProfileTest, AThousandAreValidAndCanBeReadBack) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Profile drawn = random_profile(seed);
    const std::string text = to_toml(drawn);
    const auto read = parse_profile(text, "folder/" + drawn.name + ".toml");
    ASSERT_TRUE(read) << read.status().message() << "\n" << text;
    EXPECT_EQ(to_toml(*read), text);
    EXPECT_EQ(read->name, drawn.name);
    const Status valid = validate(fabric_of(drawn));
    ASSERT_TRUE(valid) << valid.message() << "\n" << text;
    EXPECT_GE(drawn.size(), 4);
    EXPECT_LE(drawn.size(), 14);
    EXPECT_LE(drawn.racks.size(), 5u);
    EXPECT_EQ(std::set<int>(drawn.rack_of.begin(), drawn.rack_of.end()).size(), drawn.racks.size());
    std::set<std::pair<std::int64_t, std::int64_t>> classes;
    for (const Rates& r : drawn.rates) {
      classes.insert({r.out_kbps, r.in_kbps});
      EXPECT_LE(std::max(r.out_kbps, r.in_kbps), 400'000);
    }
    EXPECT_LE(classes.size(), 4u);
  }
}

TEST(RandomProfileTest, EveryVarietyOccurs) {
  using Has = std::function<bool(const Profile&)>;
  const auto in_order = [](const Profile& p) { return std::ranges::is_sorted(p.rack_of); };
  const std::map<std::string, Has> varieties = {
      {"no racks", [](const Profile& p) { return p.racks.size() == 1; }},
      {"five racks", [](const Profile& p) { return p.racks.size() == 5; }},
      {"racks in order", [&](const Profile& p) { return p.racks.size() > 1 && in_order(p); }},
      {"racks mixed", [&](const Profile& p) { return p.racks.size() > 1 && !in_order(p); }},
      {"uneven uplinks",
       [](const Profile& p) {
         return p.racks.size() > 1 && p.racks[0].uplink != p.racks[1].uplink;
       }},
      {"an uplink without limit",
       [](const Profile& p) { return p.racks.size() > 1 && p.racks[0].uplink == Rates{}; }},
      {"uplinks by direction",
       [](const Profile& p) {
         return p.rates[0].out_kbps == p.rates[0].in_kbps &&
                p.racks[0].uplink.out_kbps != p.racks[0].uplink.in_kbps;
       }},
      {"a second tier", [](const Profile& p) { return !p.pods.empty(); }},
      {"a second tier that limits",
       [](const Profile& p) {
         return !p.pods.empty() && fabric_of(p).racks.size() == p.pods.size();
       }},
      {"racks that limit within a second tier",
       [](const Profile& p) {
         return !p.pods.empty() && fabric_of(p).racks.size() == p.racks.size();
       }},
      {"rates by direction",
       [](const Profile& p) { return p.rates[0].out_kbps != p.rates[0].in_kbps; }},
      {"htb", [](const Profile& p) { return p.shaping.shaper == Shaper::kHtb; }},
      {"policer", [](const Profile& p) { return p.shaping.shaper == Shaper::kPolicer; }},
      {"short queues", [](const Profile& p) { return p.shaping.queue_ms == 5; }},
      {"queues in bytes", [](const Profile& p) { return p.shaping.queue_bytes == 100'000; }},
      {"small bursts", [](const Profile& p) { return p.shaping.burst_bytes == 32'000; }},
      {"large packets", [](const Profile& p) { return p.shaping.gso_max_bytes == 65'536; }},
      {"defaults", [](const Profile& p) { return p.shaping.gso_max_bytes == 0; }},
      {"packet filter", [](const Profile& p) { return p.packet_filter; }},
      {"no packet filter", [](const Profile& p) { return !p.packet_filter; }},
      {"equal names", [](const Profile& p) { return p.equal_host_names; }},
      {"steady flow", [](const Profile& p) { return !p.flows.empty() && p.flows[0].off_ms == 0; }},
      {"flow on and off",
       [](const Profile& p) { return !p.flows.empty() && p.flows[0].off_ms != 0; }},
  };
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Profile drawn = random_profile(seed);
    for (const auto& [name, has] : varieties) seen[name] += has(drawn);
  }
  for (const auto& [name, has] : varieties) EXPECT_GE(seen[name], 10) << name;
}

// Whatever draws otherwise makes figures of numbered networks incomparable.
constexpr char kSeven[] = R"(about = "drawn: 4 nodes, 2 racks, 3 background flows"
nodes = 4
rate_mbps = 250

[[rack]]
name = "rack0"
nodes = [0, 2]
uplink_mbps = 166

[[rack]]
name = "rack1"
nodes = [1, 3]
uplink_mbps = 166

[[flow]]
from = 3
to = 2
rate_mbps = 16
on_ms = 1700
off_ms = 1200

[[flow]]
from = 1
to = 0
rate_mbps = 21
on_ms = 800
off_ms = 700

[[flow]]
from = 1
to = 3
rate_mbps = 22
on_ms = 2000
off_ms = 800
)";

TEST(RandomProfileTest, ASeedIsOneNetwork) {
  EXPECT_EQ(to_toml(random_profile(7)), kSeven);
  const auto named = load_profile("random:7", PROFILES);
  ASSERT_TRUE(named) << named.status().message();
  EXPECT_EQ(to_toml(*named), kSeven);
  for (const char* wrong : {"random:", "random:x", "random:1.5", "random:-1"}) {
    const auto profile = load_profile(wrong, PROFILES);
    ASSERT_FALSE(profile) << wrong;
    EXPECT_NE(profile.status().message().find("whole number from 0"), std::string::npos);
  }
}

}  // namespace
}  // namespace riffle::cluster::random_profile_test
