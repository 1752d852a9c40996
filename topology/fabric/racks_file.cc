#include "topology/fabric/racks_file.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <unordered_map>

#include "topology/fabric/slurm_conf.h"
#include "topology/fabric/text_file.h"
#include "topology/fabric/topology_yaml.h"

namespace riffle {
namespace {

// YAML and JSON begin with a list or a map; Slurm's own lines with a word and "=".
bool looks_like_yaml(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::size_t first = text.find_first_not_of(" \t\r", at);
    if (first < end && text[first] != '#') {
      if (text[first] == '-' || text[first] == '[' || text[first] == '{') return true;
      const std::size_t colon = text.find(':', first), equals = text.find('=', first);
      return colon < end && equals > colon;
    }
    at = end + 1;
  }
  return false;
}

// "node7.cluster.example" is node7 to Slurm; an address stays whole.
std::string without_domain(const std::string& name) {
  const std::string host = name.substr(0, name.find('.'));
  const bool has_letter =
      std::any_of(host.begin(), host.end(), [](unsigned char c) { return std::isalpha(c) != 0; });
  return has_letter && host.find(':') == std::string::npos ? host : name;
}

int switch_of(const SwitchTable& table, const NodeAliases& aliases) {
  for (const std::string& alias : aliases) {
    int found = table.switch_of(alias);
    if (found < 0) found = table.switch_of(without_domain(alias));
    if (found >= 0) return found;
  }
  return -1;
}

std::string missing_nodes(const SwitchTable& table, std::span<const NodeAliases> nodes) {
  constexpr int kShown = 3;
  int missing = 0;
  std::string list;
  for (const NodeAliases& aliases : nodes) {
    if (switch_of(table, aliases) >= 0) continue;
    if (++missing > kShown) continue;
    list += (list.empty() ? "" : ", ") + (aliases.empty() ? "(without a name)" : aliases.front());
  }
  if (missing == 0) return "";
  if (missing > kShown) list += " and " + std::to_string(missing - kShown) + " more";
  return list + (missing == 1 ? " is" : " are") + " not in it (" + std::to_string(missing) +
         " of " + std::to_string(nodes.size()) +
         " nodes; looked for RIFFLE_NODE_NAME, host name and addresses)";
}

Racks pick(const SwitchTable& table, std::span<const NodeAliases> nodes) {
  Racks picked;
  std::unordered_map<int, int> rack_of_switch;
  for (const NodeAliases& aliases : nodes) {
    const int found = switch_of(table, aliases);
    const auto [at, is_new] = rack_of_switch.emplace(found, static_cast<int>(picked.racks.size()));
    if (is_new) picked.racks.push_back({table.name(found), 0, 0});
    picked.rack_of.push_back(at->second);
  }
  return picked;
}

std::string first_file(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    for (const char* name : {"topology.yaml", "topology.conf"}) {  // Slurm's order
      const std::filesystem::path file = std::filesystem::path(folder) / name;
      std::error_code error;
      if (std::filesystem::is_regular_file(file, error)) return file;
    }
  }
  return "";
}

}  // namespace

Result<Racks> parse_racks(const std::string& text, const std::string& origin,
                          std::span<const NodeAliases> nodes) {
  const bool is_yaml = looks_like_yaml(text);
  std::vector<SwitchTable> tables;
  if (is_yaml) {
    Result<std::vector<SwitchTable>> read = read_topology_yaml(text, origin);
    if (!read) return read.status();
    tables = std::move(*read);
  } else {
    Result<SwitchTable> read = read_slurm_conf(text, origin);
    if (!read) return read.status();
    tables.push_back(std::move(*read));
  }
  // A cluster may have several topologies, one per partition: the first that knows all of us.
  std::string missing;
  for (const SwitchTable& table : tables) {
    const std::string of_this = missing_nodes(table, nodes);
    if (of_this.empty()) {
      Racks racks = pick(table, nodes);
      racks.source = "topology file " + origin;
      return racks;
    }
    if (missing.empty()) missing = of_this;
  }
  return invalid_argument("topology file " + origin + ": " + missing);
}

Result<Racks> load_racks(const std::string& path, std::span<const NodeAliases> nodes) {
  try {
    Result<std::string> text = read_text_file(path, "topology file", "RIFFLE_TOPOLOGY");
    if (!text) return text.status();
    return parse_racks(*text, path, nodes);
  } catch (const std::bad_alloc&) {
    return system_error("topology file " + path + ": not enough memory to read it");
  }
}

std::string slurm_topology_file() {
  if (const char* conf = std::getenv("SLURM_CONF"); conf != nullptr && *conf != '\0') {
    return first_file({std::filesystem::path(conf).parent_path()});
  }
  if (std::getenv("SLURM_JOB_ID") == nullptr) return "";
  return first_file({"/run/slurm/conf", "/etc/slurm"});  // the first: fetched from the controller
}

void put_into_racks(const Racks& racks, Fabric& fabric) {
  RIFFLE_CHECK(racks.rack_of.size() == fabric.nodes.size(), "racks of other nodes");
  fabric.racks = racks.racks;
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) fabric.nodes[n].rack = racks.rack_of[n];
}

}  // namespace riffle
