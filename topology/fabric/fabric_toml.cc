#include "topology/fabric/fabric_toml.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
// The parser (3.3.0) asserts on some malformed keys before it reports them, and with NDEBUG tells
// the compiler that they cannot be. Bad input must end in a message in every build.
#undef NDEBUG
#define TOML_ASSERT(expression) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

namespace riffle {
namespace {

constexpr double kMinMbps = 0.001;
constexpr double kMaxMbps = 10'000'000;

// One table of the file with all that a message about it needs. The first fault is kept and every
// later question answered with nothing, so that the code below reads straight on.
class Section {
 public:
  Section(const toml::table& table, std::string title, const std::string& origin, Status& fault)
      : table_(table), title_(std::move(title)), origin_(origin), fault_(fault) {}

  void accept_only(std::initializer_list<std::string_view> keys) {
    std::string list;
    for (auto key : keys) list += (list.empty() ? "" : ", ") + std::string(key);
    for (const auto& [key, node] : table_) {
      if (std::find(keys.begin(), keys.end(), key.str()) == keys.end()) {
        fail(node, "unknown key \"" + std::string(key.str()) + "\"; accepted: " + list);
      }
    }
  }

  std::optional<std::string> text(const char* key) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    auto value = node->value_exact<std::string>();
    if (value && !value->empty() && value->size() <= 255) return value;
    fail(*node, std::string(key) + " must be a text of 1..255 bytes in quotes");
    return {};
  }

  std::optional<std::int64_t> rate_kbps(const char* key, bool zero_allowed) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto mbps = node->is_number() ? node->value<double>() : std::nullopt;
    if (mbps && zero_allowed && *mbps == 0) return 0;
    if (mbps && *mbps >= kMinMbps && *mbps <= kMaxMbps) return std::llround(*mbps * 1000);
    fail(*node, std::string(key) + " must be a number from 0.001 to 10000000 (Mbit/s)" +
                    (zero_allowed ? ", or 0 for no limit" : ""));
    return {};
  }

  std::optional<std::int64_t> latency_us(const char* key, std::int64_t most = kMaxLatencyUs) {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    const auto value = node->value_exact<std::int64_t>();
    if (value && *value >= 0 && *value <= most) return value;
    fail(*node, std::string(key) + " must be a whole number from 0 to " + std::to_string(most) +
                    " (microseconds)" + (most < kMaxLatencyUs ? ", which is latency_us" : ""));
    return {};
  }

  // Either one rate for both directions or one for each.
  std::optional<FabricFile::Rates> rates(const char* both, const char* out, const char* in,
                                         bool zero_allowed) {
    const auto b = rate_kbps(both, zero_allowed);
    const auto o = rate_kbps(out, zero_allowed);
    const auto i = rate_kbps(in, zero_allowed);
    if (b && (o || i)) {
      fail(table_,
           std::string(both) + " is for both directions and excludes " + out + " and " + in);
    }
    if (o.has_value() != i.has_value()) {
      fail(table_, std::string(out) + " and " + in + " come together");
    }
    if (b) return FabricFile::Rates{*b, *b};
    if (o && i) return FabricFile::Rates{*o, *i};
    return {};
  }

  void fail(const toml::node& node, const std::string& what) {
    if (!fault_) return;
    fault_ =
        invalid_argument("fabric file " + origin_ + ", line " +
                         std::to_string(node.source().begin.line) + ", " + title_ + ": " + what);
  }
  void fail(const std::string& what) { fail(table_, what); }
  std::int64_t line() const { return table_.source().begin.line; }

 private:
  const toml::table& table_;
  std::string title_;
  const std::string& origin_;
  Status& fault_;
};

class FileReader {
 public:
  FileReader(const toml::table& root, const std::string& origin) : root_(root), origin_(origin) {}

  Result<FabricFile> read() {
    Section top(root_, "top level", origin_, fault_);
    top.accept_only({"latency_us", "rack_latency_us", "default", "rack", "node"});
    if (const auto us = top.latency_us("latency_us")) file_.latency_us = *us;
    file_.rack_latency_us = top.latency_us("rack_latency_us", file_.latency_us);
    read_default(top);
    for_each_table(top, "rack", [&](Section& s) { read_rack(s); });
    for_each_table(top, "node", [&](Section& s) { read_node(s); });
    if (!fault_) return fault_;
    return std::move(file_);
  }

 private:
  void read_default(Section& top) {
    const toml::node* node = root_.get("default");
    if (node == nullptr) return;
    if (!node->is_table()) return top.fail(*node, "default must be a table: [default]");
    Section section(*node->as_table(), "[default]", origin_, fault_);
    section.accept_only({"rate_mbps", "out_mbps", "in_mbps"});
    file_.default_rates = section.rates("rate_mbps", "out_mbps", "in_mbps", false);
  }

  template <class F>
  void for_each_table(Section& top, const char* key, F each) {
    const toml::node* node = root_.get(key);
    if (node == nullptr) return;
    const std::string title = "[[" + std::string(key) + "]]";
    if (!node->is_array_of_tables()) return top.fail(*node, "must be tables: " + title);
    for (const toml::node& item : *node->as_array()) {
      Section section(*item.as_table(), title, origin_, fault_);
      each(section);
    }
  }

  void read_rack(Section& s) {
    s.accept_only({"name", "uplink_mbps", "up_mbps", "down_mbps"});
    const auto name = s.text("name");
    if (!name) return s.fail("name is missing");
    const auto rates = s.rates("uplink_mbps", "up_mbps", "down_mbps", true);
    if (!rack_index_.emplace(*name, static_cast<int>(file_.racks.size())).second) {
      return s.fail("there are two racks \"" + *name + "\"");
    }
    file_.racks.push_back({*name, rates ? rates->out_kbps : 0, rates ? rates->in_kbps : 0});
  }

  void read_node(Section& s) {
    s.accept_only({"name", "rate_mbps", "out_mbps", "in_mbps", "rack"});
    const auto name = s.text("name");
    if (!name) return s.fail("name is missing");
    FabricFile::Node node{s.rates("rate_mbps", "out_mbps", "in_mbps", false), -1, s.line()};
    if (!node.rates && !file_.default_rates) {
      return s.fail("\"" + *name + "\" needs rate_mbps, as there is no rate in [default]");
    }
    if (const auto rack = s.text("rack")) {
      const auto found = rack_index_.find(*rack);
      if (found == rack_index_.end()) {
        return s.fail("there is no [[rack]] called \"" + *rack + "\"");
      }
      node.rack = found->second;
    }
    const auto [first, is_new] = file_.nodes.emplace(*name, node);
    if (!is_new) {
      s.fail("\"" + *name + "\" is there already in line " + std::to_string(first->second.line));
    }
  }

  const toml::table& root_;
  const std::string& origin_;
  Status fault_;
  FabricFile file_;
  std::map<std::string, int> rack_index_;
};

// The line of the first byte that is not ASCII text, 0 if there is none. The parser (3.3.0) runs
// into undefined behaviour on some other characters.
int first_foreign_line(const std::string& text) {
  int line = 1;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return line;
    line += c == '\n';
  }
  return 0;
}

}  // namespace

Result<FabricFile> read_toml(const std::string& text, const std::string& origin) {
  if (const int line = first_foreign_line(text); line != 0) {
    return invalid_argument("fabric file " + origin + ", line " + std::to_string(line) +
                            ": only ASCII characters are accepted");
  }
  const toml::parse_result parsed = toml::parse(text, origin);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return invalid_argument("fabric file " + origin + ", line " +
                            std::to_string(error.source().begin.line) +
                            ": not TOML: " + std::string(error.description()));
  }
  return FileReader(parsed.table(), origin).read();
}

}  // namespace riffle
