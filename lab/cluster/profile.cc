#include "lab/cluster/profile.h"

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string_view>

namespace riffle::cluster {
namespace {

constexpr std::int64_t kMaxMbps = 100'000;

// Reads one table; keeps the first fault and answers later questions with defaults.
class Section {
 public:
  Section(const toml::table& table, std::string title, Status& fault)
      : table_(table), title_(std::move(title)), fault_(fault) {}

  void accept_only(std::initializer_list<std::string_view> keys) {
    for (const auto& [key, node] : table_) {
      if (std::find(keys.begin(), keys.end(), key.str()) != keys.end()) continue;
      std::string list;
      for (auto k : keys) list += (list.empty() ? "" : ", ") + std::string(k);
      fail("unknown key \"" + std::string(key.str()) + "\"; accepted: " + list);
    }
  }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most,
                       std::int64_t absent) {
    const toml::node* node = table_.get(key);
    if (node == nullptr && absent >= 0) return absent;
    const auto value = node ? node->value_exact<std::int64_t>() : std::nullopt;
    if (value && *value >= least && *value <= most) return *value;
    fail(std::string(key) + " must be a whole number from " + std::to_string(least) + " to " +
         std::to_string(most));
    return least;
  }
  std::int64_t rate_kbps(const char* key) { return integer(key, 1, kMaxMbps, 0) * 1000; }
  std::string text(const char* key) {
    const auto value = table_[key].value_exact<std::string>();
    if (!value || value->empty()) fail(std::string(key) + " must be a text in quotes");
    return value.value_or("");
  }
  template <class T>
  std::vector<T> list(const char* key, const char* of_what) {
    std::vector<T> out;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr || array->empty()) {
      fail(std::string(key) + " must be a list of " + of_what);
      return out;
    }
    for (const toml::node& item : *array) {
      const auto value = item.value_exact<T>();
      if (!value)
        fail(std::string(key) + " must be a list of " + of_what);
      else
        out.push_back(*value);
    }
    return out;
  }
  void fail(const std::string& what) {
    if (fault_) fault_ = invalid_argument(title_ + ": " + what);
  }

 private:
  const toml::table& table_;
  std::string title_;
  Status& fault_;
};

class Reader {
 public:
  Reader(const toml::table& root, std::string origin) : root_(root), origin_(std::move(origin)) {}

  Result<Profile> read() {
    Section top(root_, "profile " + origin_, fault_);
    top.accept_only({"about", "nodes", "rate_mbps", "exception", "rack", "fault", "neighbour"});
    profile_.about = top.text("about");
    const auto nodes = static_cast<std::size_t>(top.integer("nodes", 2, kMaxEmulatedNodes, -1));
    profile_.rate_kbps.assign(nodes, top.rate_kbps("rate_mbps"));
    profile_.rack_of.assign(nodes, -1);
    each("exception", [&](Section& s) { read_exception(s); });
    each("rack", [&](Section& s) { read_rack(s); });
    if (profile_.racks.empty()) {
      profile_.racks.push_back({"all", 0});
      profile_.rack_of.assign(nodes, 0);
    }
    for (std::size_t n = 0; n < nodes; ++n) {
      if (profile_.rack_of[n] < 0) top.fail("node " + std::to_string(n) + " is in no rack");
    }
    read_fault();
    read_neighbour();
    if (!fault_) return fault_;
    return std::move(profile_);
  }

 private:
  template <class F>
  void each(const char* key, F use) {
    const toml::node* node = root_.get(key);
    if (node == nullptr) return;
    const std::string title = "profile " + origin_ + ", [[" + key + "]]";
    if (!node->is_array_of_tables()) {
      fault_ = invalid_argument(title + ": must be tables");
      return;
    }
    for (const toml::node& item : *node->as_array()) {
      Section section(*item.as_table(), title, fault_);
      use(section);
    }
  }

  std::vector<std::size_t> members(Section& s) {
    std::vector<std::size_t> out;
    for (std::int64_t n : s.list<std::int64_t>("nodes", "node numbers")) {
      if (n < 0 || n >= profile_.size()) {
        s.fail("node " + std::to_string(n) + " does not exist, accepted 0.." +
               std::to_string(profile_.size() - 1));
      } else {
        out.push_back(static_cast<std::size_t>(n));
      }
    }
    return out;
  }

  void read_exception(Section& s) {
    s.accept_only({"nodes", "rate_mbps"});
    const std::int64_t rate = s.integer("rate_mbps", 1, kMaxMbps, -1) * 1000;
    for (std::size_t n : members(s)) profile_.rate_kbps[n] = rate;
  }

  void read_rack(Section& s) {
    s.accept_only({"name", "nodes", "uplink_mbps"});
    for (std::size_t n : members(s)) {
      if (profile_.rack_of[n] >= 0) s.fail("node " + std::to_string(n) + " is in two racks");
      profile_.rack_of[n] = static_cast<int>(profile_.racks.size());
    }
    profile_.racks.push_back({s.text("name"), s.rate_kbps("uplink_mbps")});
  }

  void read_fault() {
    const toml::table* table = root_["fault"].as_table();
    if (table == nullptr) return;
    Section s(*table, "profile " + origin_ + ", [fault]", fault_);
    s.accept_only({"node", "after_ms", "kinds"});
    profile_.fault.node = static_cast<int>(s.integer("node", 0, profile_.size() - 1, -1));
    profile_.fault.after_ms = static_cast<int>(s.integer("after_ms", 0, 60000, -1));
    profile_.fault.kinds = s.list<std::string>("kinds", "\"kill\" and \"stop\"");
    for (const std::string& kind : profile_.fault.kinds) {
      if (kind != "kill" && kind != "stop") s.fail("kinds accepts \"kill\" and \"stop\"");
    }
  }

  void read_neighbour() {
    const toml::table* table = root_["neighbour"].as_table();
    if (table == nullptr) return;
    Section s(*table, "profile " + origin_ + ", [neighbour]", fault_);
    s.accept_only({"node", "guaranteed_mbps"});
    const std::int64_t node = s.integer("node", 0, profile_.size() - 1, -1);
    const std::int64_t rate_kbps = profile_.rate_kbps[static_cast<std::size_t>(node)];
    if (rate_kbps == 0) return s.fail("its node needs a rate_mbps");
    if (profile_.size() == kMaxEmulatedNodes) return s.fail("leaves no address for the neighbour");
    profile_.neighbour.node = static_cast<int>(node);
    profile_.neighbour.guaranteed_kbps =
        s.integer("guaranteed_mbps", 1, std::max<std::int64_t>(1, rate_kbps / 1000 - 1), -1) * 1000;
  }

  const toml::table& root_;
  std::string origin_;
  Status fault_;
  Profile profile_;
};

}  // namespace

bool Profile::shaped() const {
  return std::all_of(rate_kbps.begin(), rate_kbps.end(), [](auto kbps) { return kbps > 0; });
}

Result<Profile> parse_profile(const std::string& text, const std::string& origin) {
  const toml::parse_result parsed = toml::parse(text, origin);
  if (!parsed) {
    return invalid_argument("profile " + origin + ", line " +
                            std::to_string(parsed.error().source().begin.line) +
                            ": not TOML: " + std::string(parsed.error().description()));
  }
  auto profile = Reader(parsed.table(), origin).read();
  if (profile) profile->name = std::filesystem::path(origin).stem().string();
  return profile;
}

Result<Profile> load_profile(const std::string& name, const std::string& folder) {
  std::filesystem::path path = name;
  if (!path.has_parent_path() && !path.has_extension()) {
    path = std::filesystem::path(folder) / (name + ".toml");
  }
  std::ifstream file(path);
  if (!file) {
    std::string known;
    for (const std::string& n : profile_names(folder)) known += " " + n;
    return invalid_argument("no profile \"" + name + "\": cannot read " + path.string() +
                            "; there are:" + (known.empty() ? " none" : known));
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse_profile(text.str(), path.string());
}

std::vector<std::string> profile_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Profile> resized(const Profile& profile, int nodes) {
  const int least = std::max({2, profile.fault.node + 1, profile.neighbour.node + 1,
                              static_cast<int>(profile.racks.size())});
  if (nodes < least || nodes > kMaxEmulatedNodes) {
    return invalid_argument("profile " + profile.name + " with " + std::to_string(nodes) +
                            " nodes: accepted are " + std::to_string(least) + " to " +
                            std::to_string(kMaxEmulatedNodes));
  }
  Profile out = profile;
  if (nodes == profile.size()) return out;
  out.name += "-" + std::to_string(nodes);
  out.about += "; here with " + std::to_string(nodes) + " nodes";
  out.rate_kbps.clear();
  out.rack_of.clear();
  for (int n = 0; n < nodes; ++n) {
    const auto like = static_cast<std::size_t>(n % profile.size());
    out.rate_kbps.push_back(profile.rate_kbps[like]);
    out.rack_of.push_back(profile.rack_of[like]);
  }
  for (int rack = 0; rack < static_cast<int>(out.racks.size()); ++rack) {
    if (std::ranges::find(out.rack_of, rack) != out.rack_of.end()) continue;
    return invalid_argument("profile " + profile.name + " with " + std::to_string(nodes) +
                            " nodes: rack " + out.racks[static_cast<std::size_t>(rack)].name +
                            " would be empty");
  }
  return out;
}

Profile even_profile(int nodes, std::int64_t rate_kbps) {
  Profile profile;
  profile.name = "even" + std::to_string(nodes);
  profile.about = "equal nodes on one switch";
  profile.rate_kbps.assign(static_cast<std::size_t>(nodes), rate_kbps);
  profile.rack_of.assign(static_cast<std::size_t>(nodes), 0);
  profile.racks.push_back({"all", 0});
  return profile;
}

Fabric fabric_of(const Profile& profile) {
  RIFFLE_CHECK(profile.shaped(), "an unlimited link has no rate");
  Fabric fabric;
  for (const Rack& rack : profile.racks) {
    fabric.racks.push_back({rack.name, rack.uplink_kbps, rack.uplink_kbps});
  }
  for (std::size_t n = 0; n < profile.rate_kbps.size(); ++n) {
    fabric.nodes.push_back({"node" + std::to_string(n), profile.rate_kbps[n], profile.rate_kbps[n],
                            profile.rack_of[n]});
  }
  return fabric;
}

Fabric contended_fabric_of(const Profile& profile) {
  Fabric fabric = fabric_of(profile);
  if (profile.neighbour.node < 0) return fabric;
  NodeLink& link = fabric.nodes[static_cast<std::size_t>(profile.neighbour.node)];
  link.out_kbps -= profile.neighbour.guaranteed_kbps;
  link.in_kbps -= profile.neighbour.guaranteed_kbps;
  return fabric;
}

}  // namespace riffle::cluster
