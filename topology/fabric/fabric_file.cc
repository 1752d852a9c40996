#include "topology/fabric/fabric_file.h"

#include <new>

#include "topology/fabric/fabric_toml.h"
#include "topology/fabric/text_file.h"

namespace riffle {
namespace {

// Picks the communicator's nodes and only those racks that hold one of them.
class Selection {
 public:
  Selection(const FabricFile& file, const std::string& origin)
      : file_(file), origin_(origin), rack_index_(file.racks.size(), -1) {
    loaded_.fabric.latency_us = file.latency_us;
    loaded_.fabric.rack_latency_us = file.rack_latency_us;
  }

  Status add(const NodeAliases& aliases) {
    for (const std::string& alias : aliases) {
      const auto found = file_.nodes.find(alias);
      if (found == file_.nodes.end()) continue;
      const FabricFile::Node& node = found->second;
      const FabricFile::Rates rates = node.rates ? *node.rates : *file_.default_rates;
      add_node(alias, rates, node.rack);
      return Status::ok();
    }
    const std::string name = aliases.empty() ? "(without a name)" : aliases.front();
    if (!file_.default_rates) {
      return invalid_argument("fabric file " + origin_ + ": node " + list(aliases) +
                              " is not in it and [default] gives no rate_mbps");
    }
    loaded_.notes.push_back("node " + list(aliases) + " is not in fabric file " + origin_ +
                            " and takes its default rate");
    add_node(name, *file_.default_rates, -1);
    return Status::ok();
  }

  LoadedFabric take() { return std::move(loaded_); }

 private:
  static std::string list(const NodeAliases& aliases) {
    std::string text;
    for (const std::string& a : aliases) {
      if (!text.empty()) text += " = ";
      text += a;
    }
    return text.empty() ? "(without a name)" : text;
  }

  void add_node(const std::string& name, FabricFile::Rates rates, int file_rack) {
    int& index = file_rack < 0 ? no_rack_ : rack_index_[file_rack];
    if (index < 0) {
      index = static_cast<int>(loaded_.fabric.racks.size());
      loaded_.fabric.racks.push_back(file_rack < 0 ? RackLink{"(none)", 0, 0}
                                                   : file_.racks[file_rack]);
    }
    loaded_.fabric.nodes.push_back({name, rates.out_kbps, rates.in_kbps, index});
  }

  const FabricFile& file_;
  const std::string& origin_;
  std::vector<int> rack_index_;  // from the file's racks to the selection's
  int no_rack_ = -1;
  LoadedFabric loaded_;
};

}  // namespace

Result<LoadedFabric> parse_fabric(const std::string& text, const std::string& origin,
                                  std::span<const NodeAliases> nodes) {
  Result<FabricFile> file = read_toml(text, origin);
  if (!file) return file.status();
  Selection selection(*file, origin);
  for (const NodeAliases& aliases : nodes) {
    if (Status s = selection.add(aliases); !s) return s;
  }
  LoadedFabric loaded = selection.take();
  if (Status s = validate(loaded.fabric); !s) return s;
  return loaded;
}

Result<LoadedFabric> load_fabric(const std::string& path, std::span<const NodeAliases> nodes) {
  try {
    Result<std::string> text = read_text_file(path, "fabric file", "RIFFLE_FABRIC");
    if (!text) return text.status();
    return parse_fabric(*text, path, nodes);
  } catch (const std::bad_alloc&) {
    return system_error("fabric file " + path + ": not enough memory to read it");
  }
}

}  // namespace riffle
