#include "bench/harness/path_speed.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "lab/cluster/network.h"
#include "plugin/entry/options.h"
#include "plugin/transport/handshake/stream_set.h"
#include "plugin/transport/reactor/congestion.h"

namespace riffle::bench {
namespace {

constexpr int kRunMs = 120000;

// Every line as a comment of the table.
std::string quoted(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += "# " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

// What NET's flows run under, so that iperf3 runs under the same, where nothing is chosen for all.
std::string congestion_control() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  choose_congestion_control(fd, options_from(config()).transport.congestion);
  std::array<char, 16> name{};
  socklen_t size = name.size() - 1;
  const bool known = ::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0;
  ::close(fd);
  return known ? name.data() : "cubic";
}

std::string iperf(const cluster::Cluster& cluster) {
  const std::string& of_all = cluster.profile().congestion;
  const std::string control = of_all.empty() ? congestion_control() : of_all;
  const std::string flows =
      std::to_string(streams_to_each_of(1, options_from(config()).transport.streams));
  std::thread server([&] {
    (void)cluster.run(1, {"iperf3", "--server", "--one-off", "--idle-timeout", "10"}, 20000);
  });
  std::vector<std::string> client = {
      "iperf3", "--client", cluster::address_of(1), "--time", "3", "--parallel", flows, "--json"};
  // Where it is locked for all, no socket may choose one, not even the same.
  if (of_all.empty()) client.insert(client.end(), {"--congestion", control});
  Result<std::string> report = system_error("not started");
  for (int tries = 0; !report && tries < 20; ++tries) {  // until the server listens
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    report = cluster.run(0, client, 15000);
  }
  server.join();
  if (!report) return "iperf3: " + report.status().message();
  const auto json = nlohmann::json::parse(report.value(), nullptr, false);
  const auto bits = nlohmann::json::json_pointer("/end/sum_received/bits_per_second");
  if (json.is_discarded() || !json.contains(bits)) return "iperf3: no result";
  char line[96];
  std::snprintf(line, sizeof line, "iperf3, %s flows, %s: %.0f MB/s", flows.c_str(),
                control.c_str(), json[bits].get<double>() / 8e6);
  return line;
}

}  // namespace

std::string path_speed(const Site& site) {
  const auto& holders = site.cluster->holders();
  const auto net = [&](int n) {
    return "/proc/" + std::to_string(holders[static_cast<std::size_t>(n)]) + "/ns/net";
  };
  const auto ours = site.cluster->run(
      0, {site.programs + "/riffle_net_bench", "--netns", net(0) + "," + net(1)}, kRunMs);
  return quoted(ours ? ours.value() : ours.status().message()) + quoted(iperf(*site.cluster));
}

}  // namespace riffle::bench
