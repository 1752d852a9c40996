#include "tools/fabric_source.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "lab/cluster/profile_file.h"
#include "tools/locate.h"
#include "topology/fabric/fabric_file.h"
#include "topology/fabric/fabric_toml.h"

namespace riffle::tools {
namespace {

// All nodes of a file, in its order.
Result<std::vector<std::string>> nodes_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) return invalid_argument("cannot read the fabric file " + path);
  const auto parsed = read_toml(text.str(), path);
  if (!parsed) return parsed.status();
  std::vector<std::pair<std::int64_t, std::string>> by_line;
  for (const auto& [name, node] : parsed->nodes) by_line.emplace_back(node.line, name);
  std::sort(by_line.begin(), by_line.end());
  std::vector<std::string> names;
  for (auto& [line, name] : by_line) names.push_back(name);
  if (names.empty())
    return invalid_argument("the fabric file " + path + " has no [[node]]: give --nodes");
  return names;
}

Status check_known(const std::vector<std::string>& nodes, const std::string& path) {
  const auto known = nodes_of(path);
  if (!known) return known.status();
  constexpr std::size_t kShown = 8;
  for (const std::string& node : nodes) {
    if (std::ranges::find(*known, node) != known->end()) continue;
    std::string text = "--nodes: the fabric file " + path + " has no node " + node + ", it has ";
    for (std::size_t i = 0; i < std::min(kShown, known->size()); ++i) {
      text += (i > 0 ? ", " : "") + (*known)[i];
    }
    if (known->size() > kShown) text += " and " + std::to_string(known->size() - kShown) + " more";
    return invalid_argument(text);
  }
  return Status::ok();
}

}  // namespace

void add_options(CLI::App& command, FabricSource& source) {
  command.add_option("--fabric", source.file, "Fabric file, as for RIFFLE_FABRIC");
  command
      .add_option("--nodes", source.nodes, "Its nodes in rank order; all of the file by default")
      ->delimiter(',');
  command.add_option("--profile", source.profile,
                     "A bench profile instead of a fabric file, as for bench");
}

Result<Fabric> read_fabric(const FabricSource& source, const char* command) {
  if (source.file.empty() == source.profile.empty()) {
    return invalid_argument(std::string(command) + " needs --fabric or --profile, one of them");
  }
  if (!source.profile.empty()) {
    if (!source.nodes.empty()) {
      return invalid_argument("--nodes chooses nodes of a fabric file: it takes --fabric");
    }
    const auto profile = cluster::load_profile(source.profile, profile_folder());
    if (!profile) return profile.status();
    if (!profile->shaped()) return invalid_argument("profile " + profile->name + " has no rates");
    return fabric_of(profile.value());
  }
  std::vector<std::string> names = source.nodes;
  if (names.empty()) {
    auto all = nodes_of(source.file);
    if (!all) return all.status();
    names = std::move(all.value());
  } else if (source.only_known) {
    if (Status s = check_known(names, source.file); !s) return s;
  }
  std::vector<NodeAliases> aliases;
  for (const std::string& name : names) aliases.push_back({name});
  auto loaded = load_fabric(source.file, aliases);
  if (!loaded) return loaded.status();
  for (const std::string& note : loaded->notes) {
    std::fprintf(stderr, "riffle %s: %s\n", command, note.c_str());
  }
  return std::move(loaded->fabric);
}

}  // namespace riffle::tools
