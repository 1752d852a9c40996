#include "plugin/entry/transport_options.h"

#include <cstdlib>
#include <string>

#include "plugin/entry/sync_settings.h"
#include "plugin/transport/device/placement.h"
#include "plugin/transport/device/thread_count.h"
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

// The threads of one communicator: modes and losses that are survived keep to one.
ThreadOptions thread_options(const Config& c, const DeviceChoice& choice) {
  const bool is_auto = c.threads == "auto";
  const Result<std::vector<Device>> all = is_auto ? devices(choice) : std::vector<Device>();
  ThreadOptions threads = {.count = thread_count(c.threads, all ? *all : std::vector<Device>(),
                                                 is_auto ? placement::job_mask().size() : 0),
                           .cpus = c.cpus,
                           .polled_bytes = c.polled_bytes};
  const bool is_exact = sync_settings(c).mode == SyncMode::kExact && c.on_loss == "error";
  if (is_exact) threads.per_mesh = threads.count;
  return threads;
}

}  // namespace

TransportOptions transport_options(const Config& c) {
  TransportOptions options;
  options.devices = device_choice(c);
  options.threads = thread_options(c, options.devices);
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
