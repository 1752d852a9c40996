#include "plugin/collective/connect/rack_sources.h"

#include <algorithm>
#include <string>

#include "plugin/config/log.h"

namespace riffle {
namespace {

constexpr char kLabels[] = "RIFFLE_RACK";
constexpr std::size_t kNamedNodes = 6;  // in one line

std::string list(const std::vector<int>& nodes, const std::vector<NodeReport>& reports) {
  std::string text;
  for (std::size_t i = 0; i < nodes.size() && i < kNamedNodes; ++i) {
    const auto node = static_cast<std::size_t>(nodes[i]);
    text += (i > 0 ? ", " : "") + reports[node].host;
  }
  if (nodes.size() > kNamedNodes) {
    text += " and " + std::to_string(nodes.size() - kNamedNodes) + " more";
  }
  return text;
}

std::optional<probe::RackHint> labels(const std::vector<NodeReport>& reports) {
  std::vector<std::string> names;
  std::vector<int> nameless;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    names.push_back(reports[i].rack);
    if (names.back().empty()) nameless.push_back(static_cast<int>(i));
  }
  if (!nameless.empty() && nameless.size() < reports.size()) {
    log_warn("{} is not set on all nodes and ignored; it lacks on {}", kLabels,
             list(nameless, reports));
  }
  return probe::hint_of_texts(kLabels, probe::kLabelNats, names);
}

std::optional<probe::RackHint> subnets(const std::vector<NodeReport>& reports) {
  std::vector<std::string> networks;
  for (const NodeReport& r : reports) networks.push_back(r.network);
  return probe::hint_of_texts("subnets", probe::kTraceNats, networks);
}

Racks racks_of(const probe::RackHint& labels, const std::vector<NodeReport>& reports) {
  Racks racks;
  racks.rack_of = labels.rack_of;
  racks.source = labels.source;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const auto rack = static_cast<std::size_t>(labels.rack_of[i]);
    if (rack == racks.racks.size()) racks.racks.push_back({reports[i].rack, 0, 0});
  }
  return racks;
}

std::optional<Racks> racks_from_file(const ConnectOptions& options,
                                     const std::vector<NodeReport>& reports) {
  if (options.topology == "none") return std::nullopt;
  const std::string path = options.topology.empty() ? slurm_topology_file() : options.topology;
  if (path.empty()) return std::nullopt;
  std::vector<NodeAliases> names;
  for (const NodeReport& r : reports) names.push_back(r.aliases);
  Result<Racks> racks = load_racks(path, names);
  if (racks) return std::move(*racks);
  log_warn("{}; going on without it", racks.status().message());
  return std::nullopt;
}

}  // namespace

std::optional<Racks> look_up_racks(const ConnectOptions& options,
                                   const std::vector<NodeReport>& reports,
                                   probe::KnownRacks* known) {
  if (!options.fabric.empty()) return std::nullopt;
  std::optional<Racks> racks = racks_from_file(options, reports);
  const auto named = labels(reports);
  if (racks) {
    known->rack_of = racks->rack_of;
    if (!named) return racks;
    const std::vector<int> others = probe::contradicting(*named, racks->rack_of);
    if (!others.empty()) {
      log_warn("{} contradicts the {}, which counts: {}", kLabels, racks->source,
               list(others, reports));
    }
    return racks;
  }
  if (named) {
    racks = racks_of(*named, reports);
    known->hints.push_back(*named);
  }
  if (auto hint = subnets(reports)) known->hints.push_back(std::move(*hint));
  return racks;
}

void log_overruled(const probe::Racks& found, const std::vector<NodeReport>& reports) {
  for (const auto& hint : found.overruled) {
    log_info("racks by {} were not what was measured, which counts: {} elsewhere", hint.source,
             list(hint.nodes, reports));
  }
}

}  // namespace riffle
