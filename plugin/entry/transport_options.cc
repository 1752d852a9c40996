#include "plugin/entry/transport_options.h"

#include <cstdlib>
#include <string>

#include "topology/base/time.h"

namespace riffle {
namespace {

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

DeviceChoice device_choice(const Config& c) {
  DeviceChoice choice;
  choice.per_nic = c.device_per_nic;
  choice.rule = c.socket_ifname;
  choice.rule_source = "RIFFLE_SOCKET_IFNAME";
  if (choice.rule.empty()) {
    choice.rule = environment("NCCL_SOCKET_IFNAME");
    if (choice.rule.size() == 1) choice.rule.clear();  // NCCL takes that for unset
    choice.rule_source = "NCCL_SOCKET_IFNAME";
  }
  choice.family = c.socket_family;
  if (choice.family == "any") {
    const std::string family = environment("NCCL_SOCKET_FAMILY");
    if (family == "AF_INET") choice.family = "ipv4";
    if (family == "AF_INET6") choice.family = "ipv6";
  }
  return choice;
}

}  // namespace

TransportOptions transport_options(const Config& c) {
  TransportOptions options;
  options.devices = device_choice(c);
  options.threads = {static_cast<int>(c.threads), c.cpus};
  options.streams = static_cast<int>(c.streams);
  options.congestion = c.congestion;
  options.payload_crc = c.payload_crc;
  options.peer_timeout_ns = static_cast<std::uint64_t>(c.peer_timeout_s) * kSecond;
  options.connect_timeout_ns = static_cast<std::uint64_t>(c.connect_timeout_s) * kSecond;
  return options;
}

nccl_net::LibraryChoice wire_choice(const Config& c) {
  if (!nccl_net::names_library(c.net)) return {};
  return {.name = c.net, .plugin_list = environment("NCCL_NET_PLUGIN")};
}

RdmaChoice rdma_choice(const Config& c) {
  return {.wish = c.net,
          .ports = c.rdma_ports,
          .disabled = environment("NCCL_IB_DISABLE"),
          .hca = environment("NCCL_IB_HCA"),
          .network = environment("NCCL_NET")};
}

}  // namespace riffle
