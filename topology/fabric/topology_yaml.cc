#include "topology/fabric/topology_yaml.h"

#include <utility>

#include "topology/fabric/yaml_subset.h"

namespace riffle {
namespace {

constexpr const char* kAccepted =
    "accepted is a list of topologies with tree: switches: or block: blocks: (Slurm, topograph), "
    "or instances: with id and network_layers (topograph)";

using Kind = YamlValue::Kind;

class TopologyReader {
 public:
  explicit TopologyReader(const std::string& origin) : origin_(origin) {}

  Result<std::vector<SwitchTable>> read(const YamlValue& root) {
    Status status;
    if (const YamlValue* instances = root.find("instances")) {
      status = read_instances(*instances);
    } else if (root.kind == Kind::kList) {
      for (const YamlValue& topology : root.items) {
        if (status) status = read_topology(topology);
      }
    } else {
      status = fail(root, kAccepted);
    }
    if (!status) return status;
    if (tables_.empty()) {
      return invalid_argument("topology file " + origin_ + ": names no nodes; " + kAccepted);
    }
    return std::move(tables_);
  }

 private:
  Status fail(const YamlValue& at, const std::string& what) const {
    return topology_fault(origin_, at.line, what);
  }

  Status read_topology(const YamlValue& topology) {
    if (topology.kind != Kind::kMap) return fail(topology, kAccepted);
    const YamlValue* is_default = topology.find("cluster_default");
    const bool goes_first = is_default != nullptr && is_default->text == "true";
    if (const YamlValue* tree = topology.find("tree")) {
      return read_units(*tree, "switches", "switch", goes_first);
    }
    if (const YamlValue* block = topology.find("block")) {
      return read_units(*block, "blocks", "block", goes_first);
    }
    return Status::ok();  // flat, or of a kind that does not tell racks
  }

  Status read_units(const YamlValue& parent, const char* list, const char* kind, bool goes_first) {
    const YamlValue* units = parent.find(list);
    if (units == nullptr || units->kind != Kind::kList) {
      return fail(parent, std::string("expected a list \"") + list + "\"");
    }
    SwitchTable table(origin_, kind);
    for (const YamlValue& unit : units->items) {
      const YamlValue* name = unit.find(kind);
      if (name == nullptr || !name->is_scalar()) {
        return fail(unit, std::string("expected \"") + kind + ": NAME\"");
      }
      std::string nodes, children;
      if (Status s = take_text(unit, "nodes", nodes); !s) return s;
      if (Status s = take_text(unit, "children", children); !s) return s;
      // Two calls, as a switch may have both.
      if (!nodes.empty() || children.empty()) {
        if (Status s = table.add(name->text, nodes, "", unit.line); !s) return s;
      }
      if (children.empty()) continue;
      if (Status s = table.add(name->text, "", children, unit.line); !s) return s;
    }
    if (Status s = table.check(); !s) return s;
    if (table.has_nodes()) {
      tables_.insert(goes_first ? tables_.begin() : tables_.end(), std::move(table));
    }
    return Status::ok();
  }

  Status take_text(const YamlValue& map, const char* key, std::string& text) const {
    const YamlValue* value = map.find(key);
    if (value == nullptr || value->kind == Kind::kNull) return Status::ok();
    if (!value->is_scalar()) {
      return fail(*value, std::string(key) + " must be a text like node[1-4,7]");
    }
    text = value->text;
    return Status::ok();
  }

  Status read_instances(const YamlValue& instances) {
    if (instances.kind != Kind::kList) return fail(instances, kAccepted);
    SwitchTable table(origin_, "switch");
    for (const YamlValue& instance : instances.items) {
      const YamlValue* id = instance.find("id");
      const YamlValue* layers = instance.find("network_layers");
      if (id == nullptr || !id->is_scalar() || id->text.empty()) {
        return fail(instance, "an instance needs an id");
      }
      // Closest switch first; without one the instance's place is not known.
      if (layers == nullptr || layers->kind != Kind::kList || layers->items.empty()) continue;
      const YamlValue& leaf = layers->items.front();
      if (!leaf.is_scalar()) return fail(leaf, "network_layers must be a list of names");
      if (Status s = table.add_node(leaf.text, id->text, instance.line); !s) return s;
    }
    if (table.has_nodes()) tables_.push_back(std::move(table));
    return Status::ok();
  }

  const std::string& origin_;
  std::vector<SwitchTable> tables_;
};

}  // namespace

Result<std::vector<SwitchTable>> read_topology_yaml(const std::string& text,
                                                    const std::string& origin) {
  const Result<YamlValue> root = read_yaml(text, origin);
  if (!root) return root.status();
  return TopologyReader(origin).read(*root);
}

}  // namespace riffle
