// The names of all peers. A name stands for one, or for several that compete under it.
#include <algorithm>
#include <iterator>

#include "bench/peers/peer.h"

namespace riffle::bench {
namespace {

using host::Algorithm;

constexpr const char* kGloo[] = {"ring", "bcube", "ring-classic", "chunked", "hd", "bcube-classic"};
// coll_tuned_allreduce_algorithm, but for "ignore".
constexpr const char* kOpenMpi[] = {"basic_linear", "nonoverlapping", "recursive_doubling",
                                    "ring",         "segmented_ring", "rabenseifner"};

std::vector<Peer> under(const std::string& title, std::vector<Peer> peers) {
  for (Peer& peer : peers) peer.title = title;
  return peers;
}

std::vector<Peer> gloo(const Site& site) {
  std::vector<Peer> peers;
  for (const char* algorithm : kGloo) {
    peers.push_back(gloo_peer(algorithm, site.programs, site.ranks));
  }
  return peers;
}

std::vector<Peer> openmpi(const Site& site) {
  std::vector<Peer> peers = {openmpi_peer("", site.programs)};
  for (const char* algorithm : kOpenMpi) peers.push_back(openmpi_peer(algorithm, site.programs));
  return peers;
}

// A tree has as many hops as it has levels, each of which holds a chunk, by default an eighth of
// the buffer: smaller ones fill it sooner, larger ones cost less per byte.
std::vector<Peer> trees(bool in_rack_order) {
  const std::string name = in_rack_order ? "nccl-tree-ordered" : "nccl-tree";
  return {nccl_peer(name, {Algorithm::kTree, in_rack_order}),
          nccl_peer(name + "-1M", {Algorithm::kTree, in_rack_order, 1 << 20}),
          nccl_peer(name + "-256K", {Algorithm::kTree, in_rack_order, 256 << 10})};
}

std::vector<Peer> rings_and_trees() {
  std::vector<Peer> peers = trees(false);
  peers.insert(peers.begin(), nccl_peer("nccl-ring", {}));
  return peers;
}

struct Entry {
  const char* name;
  const char* about;
  std::vector<Peer> (*make)(const Site&);
};

const Entry kEntries[] = {
    {"riffle", "always there, first",
     [](const Site&) { return std::vector{riffle_peer("riffle")}; }},
    {"riffle-fixed", "riffle without replanning intervals",
     [](const Site&) {
       return std::vector{riffle_peer("riffle-fixed", {{"RIFFLE_EPOCH", "0"}})};
     }},
    {"riffle-exact", "riffle without the mode of --sync, --sparse or --wire",
     [](const Site&) {
       return std::vector{riffle_peer(
           "riffle-exact",
           {{"RIFFLE_SYNC", "exact"}, {"RIFFLE_SPARSE", "off"}, {"RIFFLE_WIRE", "exact"}})};
     }},
    {"nccl-ring", "NCCL's ring, ranks as they lie",
     [](const Site&) { return std::vector{nccl_peer("nccl-ring", {})}; }},
    {"nccl-tree", "NCCL's double binary tree, the best of three sizes of its buffers",
     [](const Site&) { return trees(false); }},
    {"nccl-best", "the better of both for each size",
     [](const Site&) { return rings_and_trees(); }},
    {"nccl-ring-ordered", "the ring with the ranks of a rack together",
     [](const Site&) {
       return std::vector{nccl_peer("nccl-ring-ordered", {Algorithm::kRing, true})};
     }},
    {"nccl-tree-ordered", "the trees with the ranks of a rack together",
     [](const Site&) { return trees(true); }},
    {"blueconnect", "rings in racks, then across them; told the racks",
     [](const Site&) {
       return std::vector{blueconnect_peer("blueconnect-128K", 128 << 10),
                          blueconnect_peer("blueconnect-256K", 256 << 10),
                          blueconnect_peer("blueconnect-1M", 1 << 20)};
     }},
    {"gloo", "the best of gloo-ring, -bcube, -ring-classic, -chunked, -hd, -bcube-classic", gloo},
    {"openmpi",
     "the best of openmpi-default, which is its own choice, and of its tuned algorithms: "
     "-basic_linear, -nonoverlapping, -recursive_doubling, -ring, -segmented_ring, -rabenseifner",
     openmpi}};

// A name of one of several that compete: then it stands alone.
std::vector<Peer> variant(const std::string& name, const Site& site) {
  for (const Entry& entry : kEntries) {
    for (Peer& peer : entry.make(site)) {
      if (peer.name == name) return {std::move(peer)};
    }
  }
  return {};
}

}  // namespace

std::string peer_names() {
  std::string text;
  for (const Entry& entry : kEntries) {
    text += "  " + std::string(entry.name) + ": " + entry.about + "\n";
  }
  return text;
}

Result<std::vector<Peer>> find_peers(const std::vector<std::string>& names, const Site& site) {
  std::vector<Peer> all;
  for (const std::string& name : names) {
    const auto entry = std::ranges::find(kEntries, name, &Entry::name);
    std::vector<Peer> found = entry != std::end(kEntries) ? under(name, entry->make(site))
                                                          : under(name, variant(name, site));
    if (found.empty()) {
      return invalid_argument("no peer \"" + name + "\"; there are\n" + peer_names());
    }
    std::ranges::move(found, std::back_inserter(all));
  }
  return all;
}

}  // namespace riffle::bench
