#include "topology/probe/tomography.h"

#include <algorithm>
#include <cmath>

#include "topology/probe/clusters.h"
#include "topology/probe/live_fabric.h"

namespace riffle::probe {
namespace {

constexpr std::uint64_t kLeastBytes = 256 << 10;  // of a pair, for its rate to mean something
constexpr double kLeastGap = 1.5;  // pairs within racks are faster than others by this factor
constexpr std::size_t kMostGuesses = 2;
constexpr double kInside = 0.1;  // of a node's bytes
constexpr double kAlike = 1.15;  // rates of nodes that share a link

double kbps(const PairTime& p) {
  if (p.bytes < kLeastBytes) return 0;
  return static_cast<double>(p.bytes) * 8e3 /
         static_cast<double>(std::max<std::uint64_t>(p.busy_us, 1));
}

// How many times faster pairs within groups are than others, as the logarithm over the spread of
// both: what both kinds have in common counts against it. 0: they are not.
double contrast(const PairTable& distance, const std::vector<int>& rack_of) {
  double sum[2] = {0, 0}, squares[2] = {0, 0}, count[2] = {0, 0};
  for (int a = 0; a < distance.nodes(); ++a) {
    for (int b = 0; b < distance.nodes(); ++b) {
      const double d = distance.at(a, b);
      if (a == b || d < 0) continue;
      const int kind = rack_of[static_cast<std::size_t>(a)] == rack_of[static_cast<std::size_t>(b)];
      sum[kind] += d;
      squares[kind] += d * d;
      ++count[kind];
    }
  }
  if (count[0] == 0 || count[1] == 0) return 0;
  const double gap = sum[0] / count[0] - sum[1] / count[1];
  if (gap < std::log(kLeastGap)) return 0;
  double spread = 0;
  for (const int kind : {0, 1}) {
    spread += squares[kind] - sum[kind] * sum[kind] / count[kind];
  }
  return gap / std::sqrt(std::max(1e-6, spread / (count[0] + count[1])));
}

// What a rack sends to one other rack, or receives from it.
struct Block {
  double longest_us = 0, bytes = 0;
};

// A link has at least what went through it on average, and what the blocks that were soon over had
// by then; the others were held up at their other end. If it was the limit, all took as long and
// both are its rate. Between the two holds what is known of it; 0: nothing.
double rate_of(std::vector<Block> blocks, double link_per_payload, double known_kbps) {
  std::sort(blocks.begin(), blocks.end(),
            [](const Block& a, const Block& b) { return a.longest_us < b.longest_us; });
  double bytes = 0, least = 0, most = 0;
  for (const Block& block : blocks) {
    if (block.bytes == 0) continue;
    bytes += block.bytes;
    least = bytes * 8e3 / std::max(1.0, block.longest_us) * link_per_payload;
    most = std::max(most, least);
  }
  return known_kbps > 0 ? std::clamp(known_kbps, least, most) : most;
}

// The known rack that most of the nodes are in; null: none is.
const RackLink* known_as(const std::vector<int>& rack_of, int rack, const Fabric& known) {
  std::vector<int> here(known.racks.size(), 0);
  int members = 0;
  for (std::size_t i = 0; i < rack_of.size(); ++i) {
    if (rack_of[i] != rack) continue;
    ++members;
    ++here[static_cast<std::size_t>(known.nodes[i].rack)];
  }
  const auto most = std::max_element(here.begin(), here.end());
  if (most == here.end() || 2 * *most <= members) return nullptr;
  return &known.racks[static_cast<std::size_t>(most - here.begin())];
}

RackLink uplink(const std::vector<std::vector<PairTime>>& pairs, const std::vector<int>& rack_of,
                int rack, const Fabric& known) {
  const auto racks =
      static_cast<std::size_t>(1 + *std::max_element(rack_of.begin(), rack_of.end()));
  const RackLink* as = known_as(rack_of, rack, known);
  RackLink link;
  link.name = "seen" + std::to_string(rack);
  for (const bool up : {true, false}) {
    std::vector<Block> blocks(racks);
    for (std::size_t a = 0; a < pairs.size(); ++a) {
      for (std::size_t b = 0; b < pairs.size(); ++b) {
        if (rack_of[a] != rack || rack_of[b] == rack) continue;
        const PairTime& p = up ? pairs[a][b] : pairs[b][a];
        Block& block = blocks[static_cast<std::size_t>(rack_of[b])];
        block.bytes += static_cast<double>(p.bytes);
        block.longest_us = std::max(block.longest_us, static_cast<double>(p.busy_us));
      }
    }
    const std::int64_t known_kbps = as == nullptr ? 0 : up ? as->up_kbps : as->down_kbps;
    (up ? link.up_kbps : link.down_kbps) = std::llround(
        rate_of(std::move(blocks), link_per_payload(0), static_cast<double>(known_kbps)));
  }
  return link;
}

// Nodes that sent nothing to each other are as far apart as what others are from them differs.
void fill_unknown(PairTable* distance) {
  const PairTable known = *distance;
  for (int a = 0; a < known.nodes(); ++a) {
    for (int b = 0; b < known.nodes(); ++b) {
      if (a == b || known.at(a, b) != PairTable::kUnknown) continue;
      double sum = 0, count = 0;
      for (int c = 0; c < known.nodes(); ++c) {
        const double to_a = known.at(a, c), to_b = known.at(b, c);
        if (c == a || c == b || to_a == PairTable::kUnknown || to_b == PairTable::kUnknown)
          continue;
        sum += std::abs(to_a - to_b);
        ++count;
      }
      if (count > 0) distance->at(a, b) = sum / count;
    }
  }
}

bool are_alike(const std::vector<NodeLink*>& nodes) {
  const auto slower = [](const NodeLink* a, const NodeLink* b) {
    return a->out_kbps < b->out_kbps;
  };
  const auto [least, most] = std::minmax_element(nodes.begin(), nodes.end(), slower);
  return least != nodes.end() &&
         static_cast<double>((*most)->out_kbps) <= kAlike * static_cast<double>((*least)->out_kbps);
}

// Nodes in one rack that hardly sent anything within it, and are known to be equally slow: that may
// be the uplink's part that each has, and they as fast as any. Nodes that differ were told apart by
// something else than a link that they share.
void doubt_nodes(const std::vector<std::vector<PairTime>>& pairs, Fabric* guess) {
  std::int64_t fastest_out = 0, fastest_in = 0;
  for (const NodeLink& n : guess->nodes) {
    fastest_out = std::max(fastest_out, n.out_kbps);
    fastest_in = std::max(fastest_in, n.in_kbps);
  }
  std::vector<std::vector<NodeLink*>> doubtful(guess->racks.size());
  for (std::size_t a = 0; a < pairs.size(); ++a) {
    NodeLink& node = guess->nodes[a];
    double all = 0, inside = 0;
    for (std::size_t b = 0; b < pairs.size(); ++b) {
      const double both = static_cast<double>(pairs[a][b].bytes + pairs[b][a].bytes);
      all += both;
      if (guess->nodes[b].rack == node.rack) inside += both;
    }
    if (inside <= kInside * all) doubtful[static_cast<std::size_t>(node.rack)].push_back(&node);
  }
  for (const std::vector<NodeLink*>& nodes : doubtful) {
    if (!are_alike(nodes)) continue;
    for (NodeLink* node : nodes) {
      node->out_kbps = fastest_out;
      node->in_kbps = fastest_in;
    }
  }
}

}  // namespace

std::vector<Fabric> racks_from_pairs(const std::vector<std::vector<PairTime>>& pairs,
                                     const Fabric& known) {
  const int n = known.size();
  PairTable distance(n);
  double fastest = 0;
  for (const auto& row : pairs) {
    for (const PairTime& p : row) fastest = std::max(fastest, kbps(p));
  }
  for (int a = 0; a < n; ++a) {
    for (int b = 0; b < n; ++b) {
      const double both =
          std::sqrt(kbps(pairs[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]) *
                    kbps(pairs[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)]));
      distance.at(a, b) = both > 0 ? std::log(fastest / both) : PairTable::kUnknown;
    }
  }
  fill_unknown(&distance);
  struct Guess {
    double contrast;
    std::vector<int> rack_of;
  };
  std::vector<Guess> guesses;
  for (std::vector<int>& cut : average_linkage(distance, std::max(2, n / 2))) {
    const double c = contrast(distance, cut);
    if (c > 0) guesses.push_back({c, std::move(cut)});
  }
  std::stable_sort(guesses.begin(), guesses.end(),
                   [](const Guess& a, const Guess& b) { return a.contrast > b.contrast; });
  if (guesses.size() > kMostGuesses) guesses.resize(kMostGuesses);
  std::vector<Fabric> fabrics;
  for (const Guess& guess : guesses) {
    Fabric f = known;
    f.racks.clear();
    const int racks = 1 + *std::max_element(guess.rack_of.begin(), guess.rack_of.end());
    for (int r = 0; r < racks; ++r) {
      f.racks.push_back(uplink(pairs, guess.rack_of, r, known));
    }
    for (int i = 0; i < n; ++i)
      f.nodes[static_cast<std::size_t>(i)].rack = guess.rack_of[static_cast<std::size_t>(i)];
    doubt_nodes(pairs, &f);
    if (validate(f)) fabrics.push_back(std::move(f));
  }
  return fabrics;
}

}  // namespace riffle::probe
