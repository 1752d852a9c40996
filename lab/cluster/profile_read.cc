#include <algorithm>
#include <filesystem>

#include "lab/cluster/profile_file.h"
#include "lab/cluster/profile_section.h"

namespace riffle::cluster {
namespace {

constexpr std::int64_t kUnlimitedMbps = 100'000;

class Reader {
 public:
  Reader(const toml::table& root, std::string origin) : root_(root), origin_(std::move(origin)) {}

  Result<Profile> read() {
    Section top(root_, "profile " + origin_, fault_);
    top.accept_only({"about", "nodes", "rate_mbps", "out_mbps", "in_mbps", "nics", "host_names",
                     "packet_filter", "shaper", "queue_ms", "queue_bytes", "burst_bytes",
                     "gso_max_bytes", "exception", "rack", "pod", "flow", "fault", "neighbour"});
    read_nodes(top);
    read_shaping(top);
    each("exception", [&](Section& s) { read_exception(s); });
    each("rack", [&](Section& s) { read_rack(s); });
    if (profile_.racks.empty()) {
      profile_.racks.push_back({"all", {}});
      profile_.rack_of.assign(profile_.rates.size(), 0);
    }
    for (std::size_t n = 0; n < profile_.rates.size(); ++n) {
      if (profile_.rack_of[n] < 0) top.fail("node " + std::to_string(n) + " is in no rack");
    }
    each("pod", [&](Section& s) { read_pod(s); });
    if (!fault_) return fault_;  // flows pass links that must exist
    left_ = profile_;
    each("flow", [&](Section& s) { read_flow(s); });
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

  void read_nodes(Section& top) {
    profile_.about = top.text("about");
    const auto nodes = static_cast<std::size_t>(top.integer("nodes", 2, kMaxEmulatedNodes, -1));
    profile_.rates.assign(nodes, top.rates("rate_mbps", "out_mbps", "in_mbps"));
    profile_.rack_of.assign(nodes, -1);
    profile_.cpu_percent.assign(nodes, 0);
    profile_.nics = static_cast<int>(top.integer("nics", 1, kMaxEmulatedNics, 1));
    profile_.equal_host_names = top.choice("host_names", {"own", "equal"}) == 1;
    profile_.packet_filter = top.flag("packet_filter");
  }

  void read_shaping(Section& top) {
    Shaping& s = profile_.shaping;
    s.shaper = static_cast<Shaper>(top.choice("shaper", {"tbf", "htb", "policer"}));
    s.queue_ms = top.integer("queue_ms", 1, 100, 0);
    s.queue_bytes = top.integer("queue_bytes", 2'000, 100'000'000, 0);
    s.burst_bytes = top.integer("burst_bytes", 2'000, 10'000'000, s.burst_bytes);
    s.gso_max_bytes = top.integer("gso_max_bytes", 2'000, 65'536, 0);
    if (s.queue_ms != 0 && s.queue_bytes != 0) top.fail("queue_ms excludes queue_bytes");
    if (s.shaper == Shaper::kPolicer && (s.queue_ms != 0 || s.queue_bytes != 0)) {
      top.fail("a policer has no queue: neither queue_ms nor queue_bytes");
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
    s.accept_only({"nodes", "rate_mbps", "out_mbps", "in_mbps", "cpu_percent"});
    const Rates rates = s.rates("rate_mbps", "out_mbps", "in_mbps");
    const auto cpu_percent = static_cast<int>(s.integer("cpu_percent", 5, 100, 0));
    if (rates.out_kbps == 0 && cpu_percent == 0) s.fail("needs a rate_mbps or a cpu_percent");
    for (const std::size_t n : members(s)) {
      if (rates.out_kbps != 0) profile_.rates[n] = rates;
      if (cpu_percent != 0) profile_.cpu_percent[n] = cpu_percent;
    }
  }

  void read_rack(Section& s) {
    s.accept_only({"name", "nodes", "uplink_mbps", "up_mbps", "down_mbps"});
    for (const std::size_t n : members(s)) {
      if (profile_.rack_of[n] >= 0) s.fail("node " + std::to_string(n) + " is in two racks");
      profile_.rack_of[n] = static_cast<int>(profile_.racks.size());
    }
    profile_.racks.push_back({s.text("name"), s.rates("uplink_mbps", "up_mbps", "down_mbps")});
  }

  void read_pod(Section& s) {
    s.accept_only({"name", "racks", "uplink_mbps", "up_mbps", "down_mbps"});
    for (const std::string& name : s.list<std::string>("racks", "names of racks")) {
      const auto rack = std::ranges::find(profile_.racks, name, &Rack::name);
      if (rack == profile_.racks.end()) {
        s.fail("racks: there is no rack \"" + name + "\" above it");
      } else if (rack->pod >= 0) {
        s.fail("rack \"" + name + "\" is in two pods");
      } else {
        rack->pod = static_cast<int>(profile_.pods.size());
      }
    }
    profile_.pods.push_back({s.text("name"), s.rates("uplink_mbps", "up_mbps", "down_mbps")});
  }

  void read_flow(Section& s) {
    s.accept_only({"from", "to", "rate_mbps", "on_ms", "off_ms"});
    BackgroundFlow flow;
    flow.from = static_cast<int>(s.integer("from", 0, profile_.size() - 1, -1));
    flow.to = static_cast<int>(s.integer("to", 0, profile_.size() - 1, -1));
    if (flow.from == flow.to) s.fail("from and to must differ");
    // Less than every link on its way has beside the flows above it.
    std::int64_t most = kUnlimitedMbps;
    for_each_link(left_, flow, [&](std::int64_t& kbps) {
      if (kbps != 0) most = std::min(most, (kbps - 1) / 1000);
    });
    if (most < 1) return s.fail("a link on its way has no rate left");
    flow.rate_kbps = s.integer("rate_mbps", 1, most, -1) * 1000;
    for_each_link(left_, flow, [&](std::int64_t& kbps) {
      if (kbps != 0) kbps -= flow.rate_kbps;
    });
    if (s.has("on_ms") || s.has("off_ms")) {
      flow.on_ms = static_cast<int>(s.integer("on_ms", 1, 600'000, -1));
      flow.off_ms = static_cast<int>(s.integer("off_ms", 1, 600'000, -1));
    }
    profile_.flows.push_back(flow);
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
    const std::int64_t rate_kbps = profile_.rates[static_cast<std::size_t>(node)].least_kbps();
    if (rate_kbps == 0) return s.fail("its node needs a rate_mbps");
    if (profile_.nics > 1) return s.fail("needs nics = 1");
    if (profile_.size() == kMaxEmulatedNodes) return s.fail("leaves no address for the neighbour");
    profile_.neighbour.node = static_cast<int>(node);
    profile_.neighbour.guaranteed_kbps =
        s.integer("guaranteed_mbps", 1, std::max<std::int64_t>(1, rate_kbps / 1000 - 1), -1) * 1000;
  }

  const toml::table& root_;
  std::string origin_;
  Status fault_;
  Profile profile_;
  Profile left_;  // what the background flows so far leave
};

}  // namespace

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

}  // namespace riffle::cluster
