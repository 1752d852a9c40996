#include "plugin/collective/connect/live_network.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include "plugin/collective/connect/decision.h"
#include "plugin/collective/connect/rack_sources.h"
#include "plugin/config/log.h"
#include "plugin/transport/device/device.h"
#include "topology/base/printed.h"
#include "topology/fabric/fabric_file.h"
#include "topology/host/nics.h"
#include "topology/probe/live_fabric.h"

namespace riffle {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes kFresh{10};
constexpr std::size_t kMostRemembered = 16;

struct Memory {
  std::mutex mutex;
  struct Network {
    std::string text;
    Clock::time_point since;
  };
  std::vector<Network> networks;  // latest last
};

Memory& memory() {
  static Memory* const one = new Memory;  // outlives every thread
  return *one;
}

// Unless RIFFLE_PROBE=auto has a reason of its own against it.
bool may_probe(const ConnectOptions& options, const std::vector<NodeReport>& reports) {
  return options.probe != Wish::kOff && options.collnet != Wish::kOff && options.fabric.empty() &&
         reports.size() >= 2 && find_problem(reports).empty();  // node 0 refuses them anyway
}

// Of each node, the names that it shares with no other: the host name first, then as in a fabric
// file. Without any: none.
std::vector<NodeAliases> own_names(const std::vector<NodeReport>& reports) {
  std::vector<NodeAliases> names;
  std::map<std::string, int> nodes_with;
  for (const NodeReport& r : reports) {
    names.push_back({r.host});
    for (const std::string& alias : r.aliases) {
      if (std::ranges::count(names.back(), alias) == 0) names.back().push_back(alias);
    }
    for (const std::string& name : names.back()) ++nodes_with[name];
  }
  for (NodeAliases& node : names) {
    std::erase_if(node, [&](const std::string& name) { return nodes_with[name] > 1; });
  }
  return names;
}

int mtu_of(const Device& device) {
  const Result<std::vector<Nic>> nics = list_nics();
  if (!nics) return 0;
  for (const Nic& nic : *nics) {
    if (nic.name == device.addresses.front().interface) return nic.mtu;
  }
  return 0;
}

bool uses(const Racks* racks, const Fabric& fabric) {
  const auto is_same = [](int rack, const NodeLink& node) { return rack == node.rack; };
  return racks != nullptr && racks->racks.size() == fabric.racks.size() &&
         std::ranges::equal(racks->rack_of, fabric.nodes, is_same);
}

std::string effort(const ProbeOutcome& outcome) {
  return printed("%.2f s, %d rounds, %.0f MB", static_cast<double>(outcome.time_ns) / 1e9,
                 outcome.findings.rounds, static_cast<double>(outcome.bytes) / 1e6);
}

// Human-readable, and for RIFFLE_FABRIC of later jobs.
void save(const std::string& path, const std::string& what, const Fabric& fabric) {
  const std::string text = network_text(fabric);
  if (text.empty()) {
    log_warn(
        "RIFFLE_FABRIC_SAVE: {} is not written: host names and addresses do not tell the nodes "
        "apart; a RIFFLE_NODE_NAME of its own for each node does",
        path);
    return;
  }
  std::error_code none;  // a pipe would wait for its reader
  if (const auto is = std::filesystem::status(path, none); is_fifo(is)) {
    return log_warn("RIFFLE_FABRIC_SAVE: {} is a pipe, not a file", path);
  }
  std::ofstream file(path);
  file << "# " << what << "\n" << text;
  if (!file.flush()) log_warn("RIFFLE_FABRIC_SAVE: cannot write {}", path);
}

}  // namespace

bool wants_probe(const ConnectOptions& options, const std::vector<NodeReport>& reports) {
  if (!may_probe(options, reports)) return false;
  if (options.probe == Wish::kOn) return true;
  return !options.is_deterministic && !are_one_machine(reports);
}

void log_one_machine(const ConnectOptions& options, const std::vector<NodeReport>& reports) {
  if (!may_probe(options, reports) || options.probe == Wish::kOn || options.is_deterministic ||
      !are_one_machine(reports)) {
    return;
  }
  log_info(
      "network not probed: all {} nodes are one machine ({}), so all links count as equal "
      "(RIFFLE_PROBE=on probes them)",
      reports.size(), reports.front().host);
}

std::optional<Fabric> remembered_network(const ConnectOptions& options,
                                         const std::vector<NodeReport>& reports) {
  if (options.probe != Wish::kAuto) return std::nullopt;
  const std::vector<NodeAliases> names = own_names(reports);
  if (std::ranges::any_of(names, &NodeAliases::empty)) return std::nullopt;
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  for (auto it = m.networks.rbegin(); it != m.networks.rend(); ++it) {
    const auto age = Clock::now() - it->since;
    if (age > kFresh) break;
    const Result<LoadedFabric> known = parse_fabric(it->text, "the probed network", names);
    if (!known) continue;  // it lacks a node
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
    log_info("network of {} nodes as probed {} s ago", reports.size(), seconds);
    return known->fabric;
  }
  return std::nullopt;
}

void remember_network(const std::string& network) {
  if (network.empty()) return;
  Memory& m = memory();
  const std::lock_guard lock(m.mutex);
  // Nodes of one process (tests) and later communicators bring the same text again.
  for (const Memory::Network& known : m.networks) {
    if (known.text == network) return;
  }
  if (m.networks.size() >= kMostRemembered) m.networks.erase(m.networks.begin());
  m.networks.push_back({network, Clock::now()});
}

Result<Fabric> fabric_of_probe(const ProbeOutcome& outcome, const std::vector<NodeReport>& reports,
                               const Device& device, const Racks* racks) {
  const std::vector<NodeAliases> own = own_names(reports);
  std::vector<std::string> names;
  for (std::size_t n = 0; n < own.size(); ++n) {
    names.push_back(own[n].empty() ? reports[n].host : own[n].front());
  }
  Result<Fabric> fabric = probe::to_fabric(outcome.findings, names, mtu_of(device));
  if (!fabric || !uses(racks, *fabric)) return fabric;
  for (std::size_t r = 0; r < racks->racks.size(); ++r) {
    fabric->racks[r].name = racks->racks[r].name;
  }
  return fabric;
}

std::optional<Fabric> probed_network(const ConnectOptions& options, const ProbeOutcome& outcome,
                                     const std::vector<NodeReport>& reports, const Device& device,
                                     const Racks* racks) {
  const Result<Fabric> fabric = fabric_of_probe(outcome, reports, device, racks);
  const std::string trouble = outcome.trouble.empty() ? "" : " (" + outcome.trouble + ")";
  if (!fabric) {
    log_warn(
        "probing the network ({}) failed{}: {}; all links count as equal (RIFFLE_FABRIC "
        "tells what they are, RIFFLE_PROBE=off ends the attempts)",
        effort(outcome), trouble, fabric.status().message());
    return std::nullopt;
  }
  const std::string source = uses(racks, *fabric) ? "; racks from " + racks->source : "";
  const std::string what = "probed in " + effort(outcome) + trouble + ": " +
                           probe::describe(outcome.findings, *fabric) + source;
  log_info("network {}", what);
  log_overruled(outcome.findings.racks, reports);
  if (!options.fabric_save.empty()) save(options.fabric_save, what, *fabric);
  return *fabric;
}

std::string network_text(const Fabric& fabric) {
  std::set<std::string> names;
  for (const NodeLink& n : fabric.nodes) names.insert(n.name);
  return static_cast<int>(names.size()) == fabric.size() ? to_toml(fabric) : "";
}

}  // namespace riffle
