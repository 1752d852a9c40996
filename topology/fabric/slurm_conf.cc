#include "topology/fabric/slurm_conf.h"

#include <optional>
#include <string_view>

namespace riffle {
namespace {

constexpr const char* kTree =
    "accepted is SwitchName=NAME with Nodes=LIST or Switches=LIST (and LinkSpeed=ANY)";
constexpr const char* kBlock = "accepted is BlockName=NAME with Nodes=LIST, and BlockSizes=LIST";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string lower(std::string_view s) {
  std::string text(s);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

struct Pair {
  std::string key;  // lower case
  std::string value;
};

// Cuts one logical line into pairs; `why` is set where that fails.
class PairReader {
 public:
  explicit PairReader(std::string_view line) : line_(line) {}

  std::optional<Pair> next(std::string& why) {
    skip_space();
    if (at_ == line_.size()) return {};
    const std::size_t from = at_;
    while (at_ < line_.size() && line_[at_] != '=' && !is_space(line_[at_])) ++at_;
    const std::string_view key = line_.substr(from, at_ - from);
    skip_space();
    if (key.empty() || at_ == line_.size() || line_[at_] != '=') {
      why = "expected KEY=VALUE at \"" + std::string(line_.substr(from, 40)) + "\"";
      return {};
    }
    ++at_;
    skip_space();
    return Pair{lower(key), std::string(value())};
  }

 private:
  void skip_space() {
    while (at_ < line_.size() && is_space(line_[at_])) ++at_;
  }
  std::string_view value() {
    if (at_ < line_.size() && line_[at_] == '"') {
      const std::size_t close = line_.find('"', at_ + 1);
      if (close != std::string_view::npos) {
        const std::string_view inside = line_.substr(at_ + 1, close - at_ - 1);
        at_ = close + 1;
        return inside;
      }
    }
    const std::size_t from = at_;
    while (at_ < line_.size() && !is_space(line_[at_])) ++at_;
    return line_.substr(from, at_ - from);
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

class ConfReader {
 public:
  ConfReader(const std::string& text, const std::string& origin)
      : text_(text), origin_(origin), tree_(origin, "switch"), blocks_(origin, "block") {}

  Result<SwitchTable> read() {
    std::string line;
    while (next_line(line)) {
      if (Status s = read_line(line); !s) return s;
    }
    if (tree_.has_nodes() && blocks_.has_nodes()) {
      return invalid_argument("topology file " + origin_ +
                              ": has switches and blocks; accepted is one of the two");
    }
    SwitchTable& table = blocks_.has_nodes() ? blocks_ : tree_;
    if (!table.has_nodes()) {
      return invalid_argument("topology file " + origin_ + ": names no nodes; " + kTree + ", or " +
                              kBlock);
    }
    if (Status s = table.check(); !s) return s;
    return std::move(table);
  }

 private:
  // A logical line without comments; line_ is where it begins.
  bool next_line(std::string& line) {
    line.clear();
    if (at_ >= text_.size()) return false;
    line_ = next_line_;
    bool goes_on = true;
    while (goes_on && at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view part = std::string_view(text_).substr(at_, end - at_);
      at_ = end + 1;
      ++next_line_;
      part = part.substr(0, part.find('#'));
      while (!part.empty() && is_space(part.back())) part.remove_suffix(1);
      goes_on = !part.empty() && part.back() == '\\';
      if (goes_on) part.remove_suffix(1);
      line += part;
    }
    return true;
  }

  Status fail(const std::string& what) const { return topology_fault(origin_, line_, what); }

  Status read_line(const std::string& line) {
    PairReader pairs(line);
    std::optional<std::string> switch_name, block_name, nodes, switches, sizes;
    std::string ignored, why;
    bool has_any = false;
    while (const auto pair = pairs.next(why)) {
      has_any = true;
      std::optional<std::string>* field = pair->key == "switchname"   ? &switch_name
                                          : pair->key == "blockname"  ? &block_name
                                          : pair->key == "nodes"      ? &nodes
                                          : pair->key == "switches"   ? &switches
                                          : pair->key == "blocksizes" ? &sizes
                                                                      : nullptr;
      if (field == nullptr) {
        if (pair->key == "linkspeed") continue;
        return fail("unknown key \"" + pair->key + "\"; " + kTree + ", or " + kBlock);
      }
      if (*field) return fail("\"" + pair->key + "\" is given twice");
      *field = pair->value;
      if (pair->value.empty()) return fail("\"" + pair->key + "\" has no value");
    }
    if (!why.empty()) return fail(why);
    if (!has_any) return Status::ok();
    return take(switch_name, block_name, nodes, switches, sizes);
  }

  using Text = std::optional<std::string>;
  Status take(const Text& switch_name, const Text& block_name, const Text& nodes,
              const Text& switches, const Text& sizes) {
    if (switch_name && block_name) return fail("a switch and a block in one line");
    if (switch_name) {
      if (sizes) return fail("BlockSizes does not belong to a switch; " + std::string(kTree));
      if (!nodes && !switches) {
        return fail("switch " + *switch_name + " has neither nodes nor switches; " + kTree);
      }
      if (nodes) {
        if (Status s = tree_.add(*switch_name, *nodes, "", line_); !s) return s;
      }
      return switches ? tree_.add(*switch_name, "", *switches, line_) : Status::ok();
    }
    if (switches) return fail("Switches without SwitchName; " + std::string(kTree));
    if (block_name) return blocks_.add(*block_name, nodes.value_or(""), "", line_);
    if (nodes) return fail("Nodes without a name; " + std::string(kTree) + ", or " + kBlock);
    return Status::ok();  // BlockSizes alone: how blocks may be combined, not who is in them
  }

  const std::string& text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  int line_ = 1, next_line_ = 1;
  SwitchTable tree_, blocks_;
};

}  // namespace

Result<SwitchTable> read_slurm_conf(const std::string& text, const std::string& origin) {
  return ConfReader(text, origin).read();
}

}  // namespace riffle
