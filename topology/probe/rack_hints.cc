#include "topology/probe/rack_hints.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "topology/probe/clusters.h"

namespace riffle::probe {
namespace {

// How many nodes each pair of racks, of a hint and of a partition, has in common.
class Overlap {
 public:
  Overlap(const std::vector<int>& hinted, const std::vector<int>& found)
      : columns_(1 + *std::max_element(found.begin(), found.end())),
        hinted_(1 + static_cast<std::size_t>(*std::max_element(hinted.begin(), hinted.end()))),
        found_(static_cast<std::size_t>(columns_)),
        both_(hinted_.size() * found_.size()) {
    for (std::size_t n = 0; n < hinted.size(); ++n) {
      ++hinted_[static_cast<std::size_t>(hinted[n])];
      ++found_[static_cast<std::size_t>(found[n])];
      ++both_[at(hinted[n], found[n])];
    }
  }
  int both(int hinted, int found) const { return both_[at(hinted, found)]; }
  int either(int hinted, int found) const {
    return hinted_[static_cast<std::size_t>(hinted)] + found_[static_cast<std::size_t>(found)] -
           both(hinted, found);
  }
  // The found rack that holds most of a hinted one.
  int main_of(int hinted) const {
    const auto row = both_.begin() + static_cast<std::ptrdiff_t>(hinted) * columns_;
    return static_cast<int>(std::max_element(row, row + columns_) - row);
  }

 private:
  std::size_t at(int hinted, int found) const {
    return static_cast<std::size_t>(hinted) * found_.size() + static_cast<std::size_t>(found);
  }
  int columns_;
  std::vector<int> hinted_, found_, both_;
};

std::optional<RackHint> hint_of(const std::string& source, double nats, std::vector<int> rack_of) {
  const auto nodes = static_cast<int>(rack_of.size());
  const int racks = renumber(&rack_of);
  if (racks < 2 || racks == nodes) return std::nullopt;
  return RackHint{source, nats, std::move(rack_of)};
}

// Hops of every pair seen, both directions in one.
std::map<std::pair<int, int>, int> hops_of_pairs(const std::vector<Observed>& all) {
  std::map<std::pair<int, int>, int> hops;
  for (const Observed& o : all) {
    for (std::size_t f = 0; f < o.round.flows.size(); ++f) {
      const auto [from, to] = o.round.flows[f];
      if (o.samples[f].hops >= 0) hops[std::minmax(from, to)] = o.samples[f].hops;
    }
  }
  return hops;
}

}  // namespace

std::optional<RackHint> hint_of_texts(const std::string& source, double nats_per_node,
                                      const std::vector<std::string>& text_of) {
  std::map<std::string, int> racks;
  std::vector<int> rack_of;
  for (const std::string& text : text_of) {
    if (text.empty()) return std::nullopt;
    rack_of.push_back(racks.emplace(text, static_cast<int>(racks.size())).first->second);
  }
  return hint_of(source, nats_per_node, std::move(rack_of));
}

std::optional<RackHint> hint_of_hops(int nodes, const std::vector<Observed>& all) {
  const auto hops = hops_of_pairs(all);
  if (hops.empty()) return std::nullopt;
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const int fewest = std::min_element(hops.begin(), hops.end(), fewer)->second;
  std::vector<int> rack_of(static_cast<std::size_t>(nodes));
  std::iota(rack_of.begin(), rack_of.end(), 0);
  const auto rack = [&](int node) { return rack_of[static_cast<std::size_t>(node)]; };
  for (const auto& [pair, count] : hops) {
    const int a = rack(pair.first), b = rack(pair.second);
    if (count == fewest && a != b) std::replace(rack_of.begin(), rack_of.end(), b, a);
  }
  for (const auto& [pair, count] : hops) {
    if (count > fewest && rack(pair.first) == rack(pair.second)) return std::nullopt;
  }
  return hint_of("hop counts", kTraceNats, std::move(rack_of));
}

double prior(const std::vector<RackHint>& hints, const std::vector<int>& rack_of) {
  double nats = 0;
  for (const RackHint& hint : hints) {
    const Overlap overlap(hint.rack_of, rack_of);
    for (std::size_t n = 0; n < rack_of.size(); ++n) {
      nats += hint.nats_per_node * overlap.both(hint.rack_of[n], rack_of[n]) /
              overlap.either(hint.rack_of[n], rack_of[n]);
    }
  }
  return nats;
}

std::vector<int> contradicting(const RackHint& hint, const std::vector<int>& rack_of) {
  const Overlap overlap(hint.rack_of, rack_of);
  std::vector<int> nodes;
  for (std::size_t n = 0; n < rack_of.size(); ++n) {
    if (rack_of[n] != overlap.main_of(hint.rack_of[n])) nodes.push_back(static_cast<int>(n));
  }
  return nodes;
}

}  // namespace riffle::probe
