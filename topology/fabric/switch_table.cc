#include "topology/fabric/switch_table.h"

#include "topology/fabric/hostlist.h"

namespace riffle {

Status topology_fault(const std::string& origin, int line, const std::string& what) {
  return invalid_argument("topology file " + origin + ", line " + std::to_string(line) + ": " +
                          what);
}

Status SwitchTable::fail(int line, const std::string& what) const {
  return topology_fault(origin_, line, what);
}

int SwitchTable::index_of(const std::string& name) {
  const auto [at, is_new] = by_name_.emplace(name, static_cast<int>(switches_.size()));
  if (is_new) {
    switches_.emplace_back();
    switches_.back().name = name;
  }
  return at->second;
}

Status SwitchTable::put(int index, std::string node, int line) {
  if (nodes_.size() >= kMaxHostNames) {
    return fail(line, "more than " + std::to_string(kMaxHostNames) + " nodes");
  }
  const auto [at, is_new] = nodes_.emplace(std::move(node), Place{index, line});
  if (is_new || at->second.switch_index == index) return Status::ok();
  return fail(line, "node " + at->first + " is in " + kind_ + " " + switches_[index].name +
                        " and, since line " + std::to_string(at->second.line) + ", in " + kind_ +
                        " " + switches_[at->second.switch_index].name + "; accepted is one " +
                        kind_ + " per node");
}

Status SwitchTable::add_node(const std::string& name, const std::string& node, int line) {
  return put(index_of(name), node, line);
}

Status SwitchTable::add(const std::string& name, std::string_view nodes, std::string_view children,
                        int line) {
  if (name.empty() || name.size() > 255) {
    return fail(line, "the name of a " + kind_ + " must have 1..255 bytes");
  }
  const int index = index_of(name);
  Switch& entry = switches_[index];
  int& earlier = children.empty() ? entry.nodes_line : entry.children_line;
  if (earlier != 0) {
    return fail(line, kind_ + " " + name + " is there already in line " + std::to_string(earlier));
  }
  if (children.empty() || !nodes.empty()) entry.nodes_line = line;
  if (!children.empty()) entry.children_line = line;
  if (!nodes.empty()) {
    std::vector<std::string> names;
    if (Status s = expand_hostlist(nodes, names); !s) return fail(line, s.message());
    for (std::string& node : names) {
      if (Status s = put(index, std::move(node), line); !s) return s;
    }
  }
  if (children.empty()) return Status::ok();
  if (Status s = expand_hostlist(children, entry.children); !s) return fail(line, s.message());
  children_ += entry.children.size();
  if (children_ > kMaxHostNames) return fail(line, "too many switches");
  return Status::ok();
}

Status SwitchTable::check() const {
  std::vector<int> parents(switches_.size(), 0);
  for (const Switch& s : switches_) {
    for (const std::string& child : s.children) {
      const auto at = by_name_.find(child);
      if (at == by_name_.end()) {
        return fail(s.children_line, kind_ + " " + s.name + " has the lower switch " + child +
                                         ", which has no SwitchName line of its own");
      }
      ++parents[at->second];
    }
  }
  // Take away switches without a parent until none is left; what stays is a circle.
  std::vector<int> free;
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    if (parents[i] == 0) free.push_back(static_cast<int>(i));
  }
  for (std::size_t done = 0; done < free.size(); ++done) {
    for (const std::string& child : switches_[free[done]].children) {
      const int c = by_name_.at(child);
      if (--parents[c] == 0) free.push_back(c);
    }
  }
  if (free.size() == switches_.size()) return Status::ok();
  for (std::size_t i = 0; i < switches_.size(); ++i) {
    if (parents[i] > 0 && switches_[i].children_line > 0) {
      return fail(switches_[i].children_line,
                  "switch " + switches_[i].name + " is below itself; accepted is a tree");
    }
  }
  return internal_error("a circle of switches without a switch");
}

int SwitchTable::switch_of(const std::string& node) const {
  const auto at = nodes_.find(node);
  return at == nodes_.end() ? -1 : at->second.switch_index;
}

}  // namespace riffle
