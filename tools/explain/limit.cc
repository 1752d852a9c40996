#include "tools/explain/limit.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tools/explain/explanation.h"
#include "tools/numbers.h"

namespace riffle::tools {
namespace {

// A link in use for less than this share of the time in collectives does not limit them.
constexpr double kLimiting = 0.6;
// A node's links stand out if they wait this much more than those of the node in the middle.
constexpr double kOutlier = 1.8;
constexpr double kAlike = 0.97;             // of the largest share
constexpr std::size_t kMaxCompared = 1024;  // nodes, pair by pair

class Finder {
 public:
  Finder(const std::vector<std::string>& hosts, const std::optional<Fabric>& fabric,
         const Traffic& traffic)
      : hosts_(hosts),
        fabric_(fabric),
        traffic_(traffic),
        active_us_(static_cast<double>(traffic.active_us)),
        out_(hosts.size()),
        in_(hosts.size()) {
    for (const auto& [ends, link] : traffic.links) {
      add(out_[static_cast<std::size_t>(ends.first)], link);
      add(in_[static_cast<std::size_t>(ends.second)], link);
    }
  }

  Limits find() {
    Limits limits;
    if (traffic_.active_us == 0) {
      limits.headline = "no collective ran: there is nothing to explain";
      return limits;
    }
    add_nodes(limits.resources);
    if (fabric_) add_racks(limits.resources);
    std::stable_sort(limits.resources.begin(), limits.resources.end(),
                     [](const Resource& a, const Resource& b) { return a.share > b.share; });
    prefer_uplinks(limits.resources);
    limits.headline = headline(limits.resources);
    return limits;
  }

 private:
  struct Side {  // all links that leave a node, or that reach it
    std::uint64_t bytes = 0;
    double busy_us = 0;
    int links = 0;  // of which the busy time is known
    double mean_busy(double active_us) const {
      return links == 0 ? 0 : std::min(1.0, busy_us / links / active_us);
    }
  };

  static void add(Side& side, const Traffic::Link& link) {
    side.bytes += link.bytes;
    if (link.busy_us < 0) return;
    side.busy_us += link.busy_us;
    ++side.links;
  }

  Resource resource(ResourceKind kind, std::size_t index, std::uint64_t bytes, std::int64_t kbps,
                    double busy = 0) const {
    const double carried = 8 * static_cast<double>(bytes) / active_us_;
    const double rate = static_cast<double>(kbps) / 1000;
    return {kind,
            static_cast<int>(index),
            name_of(kind, index),
            rate,
            carried,
            rate > 0 ? std::min(1.0, kWirePerPayload * carried / rate) : busy};
  }

  std::string name_of(ResourceKind kind, std::size_t index) const {
    switch (kind) {
      case ResourceKind::kUplink:
        return "uplink of rack " + fabric_->racks[index].name;
      case ResourceKind::kDownlink:
        return "downlink of rack " + fabric_->racks[index].name;
      case ResourceKind::kSending:
        return "sending of node " + hosts_[index];
      case ResourceKind::kReceiving:
        return "receiving of node " + hosts_[index];
    }
    return "";
  }

  static void prefer_uplinks(std::vector<Resource>& all) {
    auto end = all.begin();
    while (end != all.end() && end->share >= kAlike * all.front().share) ++end;
    std::stable_sort(all.begin(), end,
                     [](const Resource& a, const Resource& b) { return a.kind < b.kind; });
  }

  void add_nodes(std::vector<Resource>& all) const {
    for (std::size_t n = 0; n < hosts_.size(); ++n) {
      const NodeLink* node = fabric_ ? &fabric_->nodes[n] : nullptr;
      all.push_back(resource(ResourceKind::kSending, n, out_[n].bytes, node ? node->out_kbps : 0,
                             out_[n].mean_busy(active_us_)));
      all.push_back(resource(ResourceKind::kReceiving, n, in_[n].bytes, node ? node->in_kbps : 0,
                             in_[n].mean_busy(active_us_)));
    }
  }

  void add_racks(std::vector<Resource>& all) const {
    std::vector<std::uint64_t> up(fabric_->racks.size()), down(fabric_->racks.size());
    for (const auto& [ends, link] : traffic_.links) {
      const int from = fabric_->nodes[static_cast<std::size_t>(ends.first)].rack;
      const int to = fabric_->nodes[static_cast<std::size_t>(ends.second)].rack;
      if (from == to) continue;
      up[static_cast<std::size_t>(from)] += link.bytes;
      down[static_cast<std::size_t>(to)] += link.bytes;
    }
    for (std::size_t r = 0; r < up.size(); ++r) {
      const RackLink& rack = fabric_->racks[r];
      if (rack.up_kbps > 0) {
        all.push_back(resource(ResourceKind::kUplink, r, up[r], rack.up_kbps));
      }
      if (rack.down_kbps > 0) {
        all.push_back(resource(ResourceKind::kDownlink, r, down[r], rack.down_kbps));
      }
    }
  }

  std::string headline(const std::vector<Resource>& resources) const {
    const Resource& top = resources.front();
    if (fabric_ && top.share >= kLimiting) {
      return printed("%s limits: %s, in use %.0f %% of the time in collectives", top.name.c_str(),
                     rate_text(top.rate_mbps).c_str(), 100 * top.share);
    }
    if (std::string slow = slow_node(); !slow.empty()) return slow;
    if (std::string path = slow_path(); !path.empty()) return path;
    return printed(
        "no link stands out: the busiest, %s, is in use %.0f %% of the time in "
        "collectives; processors, latency or the job itself set the pace",
        top.name.c_str(), 100 * top.share);
  }

  // The node whose links wait far more than those of the others, by the kernel's account.
  std::string slow_node() const {
    const std::vector<Side>* sides[] = {&out_, &in_};
    double most = 0;
    std::string text;
    for (const auto* side : sides) {
      std::vector<double> busy;
      for (const Side& s : *side) busy.push_back(s.mean_busy(active_us_));
      const auto top = std::max_element(busy.begin(), busy.end());
      const auto node = static_cast<std::size_t>(top - busy.begin());
      const double share = *top;
      std::nth_element(busy.begin(), busy.begin() + static_cast<std::ptrdiff_t>(busy.size() / 2),
                       busy.end());
      const double middle = busy[busy.size() / 2];
      if (share < kLimiting || share < kOutlier * middle || share <= most) continue;
      most = share;
      const bool sends = side == &out_;
      text = printed(
          "%s of node %s limits: it carried %s and had data waiting %.0f %% of the time in "
          "collectives",
          sends ? "sending" : "receiving", hosts_[node].c_str(),
          rate_text(8 * static_cast<double>((*side)[node].bytes) / active_us_).c_str(),
          100 * share);
      if (fabric_) {
        const NodeLink& link = fabric_->nodes[node];
        text += printed(
            ", though its rate counts as %s",
            rate_text(static_cast<double>(sends ? link.out_kbps : link.in_kbps) / 1000).c_str());
      }
    }
    return text;
  }

  // Two or more sets of nodes with waiting links between them only: a path that no file described.
  std::string slow_path() const {
    const std::size_t n = hosts_.size();
    if (n > kMaxCompared) return "";
    std::vector<double> busy(n * n, 0);
    double most = 0;
    for (const auto& [ends, link] : traffic_.links) {
      if (link.busy_us < 0) continue;
      const auto a = static_cast<std::size_t>(std::min(ends.first, ends.second));
      const auto b = static_cast<std::size_t>(std::max(ends.first, ends.second));
      double& both = busy[a * n + b];
      both = std::max(both, std::min(1.0, link.busy_us / active_us_));
      most = std::max(most, both);
    }
    if (most < kLimiting) return "";
    // Nodes whose link does not wait stand together.
    std::vector<std::size_t> set(n);
    std::iota(set.begin(), set.end(), std::size_t{0});
    const auto root = [&](std::size_t x) {
      while (set[x] != x) x = set[x] = set[set[x]];
      return x;
    };
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = a + 1; b < n; ++b) {
        if (busy[a * n + b] < most / 2) set[root(a)] = root(b);
      }
    }
    std::map<std::size_t, std::vector<std::size_t>> sets;
    for (std::size_t x = 0; x < n; ++x) sets[root(x)].push_back(x);
    const bool all_are_groups =
        std::all_of(sets.begin(), sets.end(), [](const auto& s) { return s.second.size() > 1; });
    if (sets.size() < 2 || !all_are_groups) return "";
    std::string text = "the path between ";
    int listed = 0;
    for (const auto& [first, members] : sets) {
      if (listed++ > 0) text += " and ";
      text += "{";
      for (std::size_t i = 0; i < members.size() && i < 8; ++i) {
        text += (i > 0 ? ", " : "") + hosts_[members[i]];
      }
      text += members.size() > 8 ? ", ...}" : "}";
      if (listed == 3) break;
    }
    return text + printed(
                      " limits: links across had data waiting up to %.0f %% of the time in "
                      "collectives, those inside did not",
                      100 * most);
  }

  const std::vector<std::string>& hosts_;
  const std::optional<Fabric>& fabric_;
  const Traffic& traffic_;
  const double active_us_;
  std::vector<Side> out_, in_;
};

}  // namespace

Limits find_limits(const std::vector<std::string>& hosts, const std::optional<Fabric>& fabric,
                   const Traffic& traffic) {
  return Finder(hosts, fabric, traffic).find();
}

}  // namespace riffle::tools
