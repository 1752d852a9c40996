// `riffle probe` where a router stands between two subnets of two nodes: who is how many hops from
// whom, with IPv4 and with IPv6 alone.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "lab/cluster/command.h"
#include "lab/cluster/namespaces.h"

namespace riffle::cluster::routed_probe_test {
namespace {

constexpr int kNodes = 4, kInSubnet = 2;

class RoutedProbe : public ::testing::TestWithParam<bool> {  // IPv6
 protected:
  void SetUp() override {
    if (Status s = namespaces_allowed(); !s) GTEST_SKIP() << s.message();
    std::string folder = (std::filesystem::temp_directory_path() / "routed-probe-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    auto made = Namespaces::create(kNodes, set_up_router, set_up_node);
    ASSERT_TRUE(made) << made.status().message();
    nodes_ = std::move(*made);
    write_agent();
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  static std::string in_subnet(int subnet, int host) {
    const std::string number = std::to_string(subnet + 1);
    return GetParam() ? "fd80:" + number + "::" + std::to_string(host)
                      : "10.80." + number + "." + std::to_string(host);
  }
  static std::string network() { return GetParam() ? "/64 nodad" : "/24"; }

  static Status set_up_router(const std::vector<pid_t>& holders) {
    std::string links;
    for (int s = 0; s < kNodes / kInSubnet; ++s) {
      const std::string bridge = "s" + std::to_string(s);
      links += "link add " + bridge + " type bridge\nlink set " + bridge + " up\naddress add " +
               in_subnet(s, 254) + network() + " dev " + bridge + "\n";
    }
    for (int n = 0; n < kNodes; ++n) {
      const std::string port = "n" + std::to_string(n);
      links += "link add " + port + " type veth peer name eth0 netns " +
               std::to_string(holders[static_cast<std::size_t>(n)]) + "\nlink set " + port +
               " up master s" + std::to_string(n / kInSubnet) + "\n";
    }
    if (const auto made = run_command({"ip", "-batch", "-"}, links); !made) return made.status();
    std::ofstream forwarding(GetParam() ? "/proc/sys/net/ipv6/conf/all/forwarding"
                                        : "/proc/sys/net/ipv4/ip_forward");
    forwarding << "1";
    return forwarding.flush() ? Status::ok() : system_error("no forwarding");
  }
  static Status set_up_node(int n) {
    const int subnet = n / kInSubnet;
    const std::string links = "link set lo up\nlink set eth0 up\naddress add " +
                              in_subnet(subnet, n + 1) + network() + " dev eth0\nroute add " +
                              (GetParam() ? "::/0" : "0.0.0.0/0") + " via " +
                              in_subnet(subnet, 254) + "\n";
    return run_command({"ip", "-batch", "-"}, links).status();
  }

  // In place of ssh.
  void write_agent() const {
    std::ofstream script(agent());
    script << "#!/bin/sh\nnode=$1\nshift\ncase $node in\n";
    for (int n = 0; n < kNodes; ++n) {
      script << "  node" << n << ") pid=" << nodes_->holders()[static_cast<std::size_t>(n)]
             << " ;;\n";
    }
    script << "esac\nexec nsenter --target $pid --net --uts"
           << (nodes_->in_user_namespace() ? " --user --preserve-credentials" : "")
           << " sh -c \"$*\"\n";
    script.close();
    chmod(agent().c_str(), 0700);
  }
  std::string agent() const { return folder_ + "/agent"; }

  std::string folder_;
  std::unique_ptr<Namespaces> nodes_;
};
INSTANTIATE_TEST_SUITE_P(Ipv4AndIpv6, RoutedProbe, ::testing::Bool());

TEST_P(RoutedProbe, TellsTheHops) {
  const auto out = run_command({"sh", "-c",
                                "RIFFLE_SOCKET_IFNAME=eth0 " RIFFLE_COMMAND " probe --json --ssh " +
                                    agent() + " node0 node1 node2 node3"},
                               "", 60000);
  ASSERT_TRUE(out) << out.status().message();
  const auto found = nlohmann::json::parse(*out);
  std::map<std::pair<int, int>, std::set<int>> hops;
  for (const auto& round : found.at("measured")) {
    for (const auto& flow : round) hops[{flow.at(0), flow.at(1)}].insert(flow.at(6).get<int>());
  }
  EXPECT_EQ(hops.size(), static_cast<std::size_t>(kNodes * (kNodes - 1)));
  for (const auto& [pair, told] : hops) {
    const bool is_routed = pair.first / kInSubnet != pair.second / kInSubnet;
    EXPECT_EQ(told, std::set<int>{is_routed ? 1 : 0}) << pair.first << " to " << pair.second;
  }
}

}  // namespace
}  // namespace riffle::cluster::routed_probe_test
