// The dense rivals of `riffle bench` compute right sums and send what their formulas say: NCCL's
// ring and trees as the stand-in cuts them, BlueConnect on racks of all sizes. 1 to 33 nodes; sizes
// of nothing, of less than a node each, odd ones, and several chunks.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "bench/peers/blueconnect/stages.h"
#include "bench/peers/racks.h"
#include "lab/nccl_host/launch_builder.h"
#include "lab/nccl_host/work/pattern.h"
#include "test/bench/memory_ranks.h"

namespace riffle::bench::dense_peers_test {
namespace {

using host::Algorithm;
using host::Op;
using host::Program;

constexpr std::size_t kStepBytes = 4096;
constexpr int kMostNodes = 33;
constexpr std::size_t kCounts[] = {0, 1, 7, 32, 1001, 4093, 30011};
constexpr auto kType = DataType::kInt64;  // sums of 33 are exact
constexpr std::size_t kElement = 8;

// What every node contributes and gets.
class Buffers {
 public:
  Buffers(int nodes, std::size_t count) : count_(count) {
    for (int n = 0; n < nodes; ++n) {
      in_.emplace_back(count + 1);
      out_.emplace_back(count + 1, -1);
      host::fill_pattern(in_.back().data(), count, kType, n, 3);
    }
  }
  const void* in(int node) { return in_[static_cast<std::size_t>(node)].data(); }
  void* out(int node) { return out_[static_cast<std::size_t>(node)].data(); }
  std::size_t wrong() const {
    std::size_t wrong = 0;
    for (const auto& out : out_) {
      wrong +=
          host::count_wrong(out.data(), count_, kType, Op::kSum, static_cast<int>(out_.size()), 3);
      wrong += out[count_] != -1;  // nothing is written behind the end
    }
    return wrong;
  }

 private:
  std::size_t count_;
  std::vector<std::vector<std::int64_t>> in_, out_;
};

Program program(const void* in, void* out, std::vector<host::Primitive> primitives) {
  Program p;
  p.input = in;
  p.output = out;
  p.type = kType;
  p.primitives = std::move(primitives);
  return p;
}

host::Layout layout_of(int nodes) {
  return {nodes, 2, kStepBytes * host::kSteps, host::Release::k2_30};
}

// As Communicator and LaunchBuilder do for one all-reduce.
std::vector<host::Scheduled> scheduled(int nodes, std::size_t count, Algorithm algorithm) {
  if (count == 0) return {};
  return host::schedule({{host::Function::kAllReduce, nullptr, nullptr, count, kType}},
                        layout_of(nodes),
                        [&](const host::Collective&, std::size_t, int) { return algorithm; });
}

void add_ring(MemoryRanks& ranks, Buffers& data, int nodes, int rank, int channel,
              const host::Part& part) {
  Program p =
      program(data.in(rank), data.out(rank), host::ring_all_reduce(part, {rank, nodes}, kElement));
  p.steps = host::steps_of(host::Function::kAllReduce, Algorithm::kRing);
  p.receives = {&ranks.wire(channel, (rank + nodes - 1) % nodes, rank).receive};
  p.sends = {&ranks.wire(channel, rank, (rank + 1) % nodes).send};
  ranks.add(rank, channel, 0, std::move(p));
}

void add_tree(MemoryRanks& ranks, Buffers& data, int nodes, int rank, int channel,
              const host::Part& part) {
  const host::TreePlace place = host::channel_tree(layout_of(nodes), rank, channel);
  const auto role = place.up < 0         ? host::TreeRole::kRoot
                    : place.down.empty() ? host::TreeRole::kLeaf
                                         : host::TreeRole::kInner;
  Program up = program(data.in(rank), data.out(rank), host::tree_up(part, role));
  Program down = program(data.in(rank), data.out(rank), host::tree_down(part, role));
  for (const int child : place.down) {
    up.receives.push_back(&ranks.wire(channel, child, rank).receive);
    (place.up < 0 ? up : down).sends.push_back(&ranks.wire(channel, rank, child).send);
  }
  if (place.up >= 0) {
    up.sends.push_back(&ranks.wire(channel, rank, place.up).send);
    down.receives.push_back(&ranks.wire(channel, place.up, rank).receive);
  }
  ranks.add(rank, channel, 0, std::move(up));
  if (place.up >= 0) ranks.add(rank, channel, 1, std::move(down));
}

// Bytes that each rank has sent, or nothing after a failure.
std::vector<std::size_t> run_nccl(int nodes, std::size_t count, Algorithm algorithm) {
  MemoryRanks ranks(kStepBytes);
  Buffers data(nodes, count);
  for (const host::Scheduled& s : scheduled(nodes, count, algorithm)) {
    for (std::size_t i = 0; i < s.parts.size(); ++i) {
      const int channel = s.first_channel + static_cast<int>(i);
      for (int rank = 0; rank < nodes; ++rank) {
        (algorithm == Algorithm::kTree ? add_tree : add_ring)(ranks, data, nodes, rank, channel,
                                                              s.parts[i]);
      }
    }
  }
  EXPECT_TRUE(ranks.run()) << nodes << " nodes, " << count << " elements: stuck";
  EXPECT_EQ(data.wrong(), 0u) << nodes << " nodes, " << count << " elements";
  std::vector<std::size_t> sent;
  for (int rank = 0; rank < nodes; ++rank) sent.push_back(ranks.sent_by(rank));
  return sent;
}

TEST(DensePeers, RingsOf2To33AreRight) {
  for (int nodes = 2; nodes <= kMostNodes; ++nodes) {
    for (const std::size_t count : kCounts) run_nccl(nodes, count, Algorithm::kRing);
  }
}

TEST(DensePeers, TreesOf2To33AreRight) {
  for (int nodes = 2; nodes <= kMostNodes; ++nodes) {
    for (const std::size_t count : kCounts) run_nccl(nodes, count, Algorithm::kTree);
  }
}

// The busiest rank: 2 (n - 1) / n of the buffer in a ring; in two trees at most twice the buffer,
// as an inner node of one is a leaf of the other, and no less for most.
TEST(DensePeers, RingsAndTreesSendWhatTheirBoundsSay) {
  constexpr std::size_t kCount = 60000;
  constexpr double kBytes = kCount * kElement;
  for (const int nodes : {4, 7, 8, 16, 33}) {
    const auto ring = run_nccl(nodes, kCount, Algorithm::kRing);
    const auto tree = run_nccl(nodes, kCount, Algorithm::kTree);
    EXPECT_NEAR(static_cast<double>(std::ranges::max(ring)) / kBytes, 2.0 * (nodes - 1) / nodes,
                0.01)
        << nodes;
    // The two channels are not cut quite evenly.
    EXPECT_NEAR(static_cast<double>(std::ranges::max(tree)) / kBytes, 2.0, 0.03) << nodes;
    const auto all = std::accumulate(tree.begin(), tree.end(), std::size_t{0});
    EXPECT_NEAR(static_cast<double>(all) / kBytes, 2.0 * (nodes - 1), 0.01) << nodes;
  }
}

// Bytes that each node has sent. In chunks of `chunk`.
std::vector<std::size_t> run_blueconnect(const Racks& racks, std::size_t count, std::size_t chunk) {
  MemoryRanks ranks(kStepBytes);
  const int nodes = static_cast<int>(rack_order(racks).size());
  Buffers data(nodes, count);
  chunk = std::min(chunk, largest_chunk(racks, kStepBytes / kElement));
  for (int node = 0; node < nodes; ++node) {
    for (std::size_t at = 0; at < count; at += chunk) {
      std::shared_ptr<bool> before;
      for (Stage& stage :
           blueconnect_stages(racks, node, {at, std::min(chunk, count - at)}, kElement)) {
        const Neighbours known = blueconnect_neighbours(racks, node, stage.kind);
        const int channel = static_cast<int>(stage.kind);
        Program p = program(stage.reads_result ? data.out(node) : data.in(node), data.out(node),
                            std::move(stage.primitives));
        p.after = before;
        p.done = before = std::make_shared<bool>(false);
        if (stage.from >= 0) {
          EXPECT_TRUE(std::ranges::count(known.receive_from, stage.from)) << stage.from;
          p.receives = {&ranks.wire(channel, stage.from, node).receive};
        }
        if (stage.to >= 0) {
          EXPECT_TRUE(std::ranges::count(known.send_to, stage.to)) << stage.to;
          p.sends = {&ranks.wire(channel, node, stage.to).send};
        }
        ranks.add(node, channel, 0, std::move(p));
      }
    }
  }
  EXPECT_TRUE(ranks.run()) << nodes << " nodes, " << count << " elements: stuck";
  EXPECT_EQ(data.wrong(), 0u) << nodes << " nodes in " << racks.size() << " racks, " << count
                              << " elements";
  std::vector<std::size_t> sent;
  for (int node = 0; node < nodes; ++node) sent.push_back(ranks.sent_by(node));
  return sent;
}

Racks random_racks(int nodes, std::mt19937& random) {
  std::vector<int> order = nodes_as_they_lie(nodes);
  std::ranges::shuffle(order, random);
  Racks racks(1 + random() % std::min(5u, static_cast<unsigned>(nodes)));
  for (std::size_t i = 0; i < order.size(); ++i) {
    // Each gets one; then as it comes.
    racks[i < racks.size() ? i : random() % racks.size()].push_back(order[i]);
  }
  return racks;
}

TEST(DensePeers, BlueConnectIsRightOn1To33NodesInAnyRacks) {
  std::mt19937 random(1);
  for (int nodes = 1; nodes <= kMostNodes; ++nodes) {
    for (int drawn = 0; drawn < 4; ++drawn) {
      const Racks racks = random_racks(nodes, random);
      for (const std::size_t count : kCounts) run_blueconnect(racks, count, 2048);
    }
  }
}

// In two racks of four: 2 * 3/4 of the buffer in the rack, and a quarter of it once each way
// across.
TEST(DensePeers, BlueConnectSendsWhatThePaperSays) {
  constexpr std::size_t kCount = 64000;
  for (const std::size_t sent : run_blueconnect({{0, 2, 4, 6}, {1, 3, 5, 7}}, kCount, 1600)) {
    EXPECT_NEAR(static_cast<double>(sent) / (kCount * kElement), 1.5 + 0.25, 0.01);
  }
}

TEST(DensePeers, RackOrderKeepsRacksAndPodsTogether) {
  cluster::Profile profile = cluster::even_profile(6, 0);
  profile.racks = {{"a", {}, 1}, {"b", {}, 0}, {"empty", {}, 0}, {"c", {}, 1}};
  profile.rack_of = {0, 1, 3, 0, 1, 3};
  EXPECT_EQ(rack_order(racks_of(profile)), (std::vector<int>{1, 4, 0, 3, 2, 5}));
  EXPECT_EQ(racks_of(profile).size(), 3u);
}

TEST(DensePeers, NamesOfPeersAndVariantsAreKnown) {
  Site site;
  site.ranks = 8;
  const auto best = find_peers({"nccl-best", "gloo-hd", "openmpi"}, site);
  ASSERT_TRUE(best) << best.status().message();
  ASSERT_EQ(best->size(), 4u + 1 + 7);
  EXPECT_EQ(best->front().title, "nccl-best");
  EXPECT_EQ(best->front().name, "nccl-ring");
  EXPECT_EQ((*best)[4].title, "gloo-hd");
  EXPECT_EQ(best->back().name, "openmpi-rabenseifner");
  EXPECT_EQ(best->back().network, "none");
  EXPECT_EQ(find_peers({"blueconnect"}, site)->front().network, "racks");
  EXPECT_EQ(riffle_peer("riffle").network, "");
  EXPECT_EQ(riffle_peer("live", {{"RIFFLE_FABRIC", ""}}).network, "live");
  const auto none = find_peers({"pigeons"}, site);
  ASSERT_FALSE(none);
  EXPECT_NE(none.status().message().find("nccl-ring-ordered"), std::string::npos);
}

}  // namespace
}  // namespace riffle::bench::dense_peers_test
