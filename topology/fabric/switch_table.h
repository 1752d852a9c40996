// The switches (or blocks) of one topology as its file describes them, checked for contradictions.
// Internal to the readers of racks_file.h.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

class SwitchTable {
 public:
  // `origin` names the file in messages, `kind` is "switch" or "block".
  SwitchTable(std::string origin, std::string kind)
      : origin_(std::move(origin)), kind_(std::move(kind)) {}

  // A switch has nodes, lower switches or, given twice as topograph does, both; hostlists. An empty
  // block is fine.
  Status add(const std::string& name, std::string_view nodes, std::string_view children, int line);
  // A node that an earlier call put on another switch is a contradiction.
  Status add_node(const std::string& name, const std::string& node, int line);
  // After the last add(): lower switches exist and no switch is below itself.
  Status check() const;

  // Index of the node's switch, -1 if the node is not in the table.
  int switch_of(const std::string& node) const;
  const std::string& name(int index) const { return switches_[index].name; }
  bool has_nodes() const { return !nodes_.empty(); }

 private:
  struct Switch {
    std::string name;
    int nodes_line = 0, children_line = 0;  // 0: not given
    std::vector<std::string> children;
  };
  struct Place {
    int switch_index;
    int line;
  };

  int index_of(const std::string& name);
  Status put(int index, std::string node, int line);
  Status fail(int line, const std::string& what) const;

  std::string origin_, kind_;
  std::vector<Switch> switches_;
  std::unordered_map<std::string, int> by_name_;
  std::unordered_map<std::string, Place> nodes_;
  std::size_t children_ = 0;
};

// "topology file ORIGIN, line N: what".
Status topology_fault(const std::string& origin, int line, const std::string& what);

}  // namespace riffle
