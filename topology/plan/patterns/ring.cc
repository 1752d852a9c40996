// The ring pattern: the partial sum of shard j starts behind its owner, at member j+1, and travels
// once around, every member adding its own; the owner adds last and sends the sum around again.
// 2(p-1) steps; every member moves 2(p-1)/p of the span, whatever the position of slow links.
//
// Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
// workstations", 2009, section 3.
#include "topology/plan/patterns/pattern.h"

namespace riffle {
namespace {

class Ring final : public GroupExchange {
 public:
  const char* name() const override { return "ring"; }

  int partial_to(int size, int /*shard*/, int member) const override { return next(size, member); }
  std::vector<int> partials_from(int size, int shard, int member) const override {
    const int last = previous(size, member);
    return last == shard ? std::vector<int>{} : std::vector<int>{last};
  }
  int sum_from(int size, int /*shard*/, int member) const override {
    return previous(size, member);
  }
  std::vector<int> sum_to(int size, int shard, int member) const override {
    const int to = next(size, member);
    return to == shard ? std::vector<int>{} : std::vector<int>{to};
  }

  int depth(int size) const override { return size - 1; }
  int partners(int /*size*/) const override { return 1; }
  bool overlaps_chunks() const override { return false; }

  // Member i passes on to member i+1 all shards but one: in reduce-scatter its own, which it keeps
  // at the end, in all-gather that of member i+1, which started from there.
  std::vector<PairTraffic> traffic(std::span<const Share> cuts, Phase phase) const override {
    const int size = static_cast<int>(cuts.size()) - 1;
    const std::uint64_t span = cuts.back() - cuts.front();
    std::uint64_t shards = 0;
    for (int j = 0; j < size; ++j) shards += cuts[j] < cuts[j + 1];
    std::vector<PairTraffic> pairs;
    for (int from = 0; from < size; ++from) {
      const int to = next(size, from);
      const int kept = phase == Phase::kReduceScatter ? from : to;
      const std::uint64_t own = cuts[kept + 1] - cuts[kept];
      pairs.push_back({from, to, span - own, shards - (own > 0)});
    }
    return pairs;
  }

 private:
  static int next(int size, int member) { return (member + 1) % size; }
  static int previous(int size, int member) { return (member + size - 1) % size; }
};

}  // namespace

const GroupExchange& ring_exchange() {
  static const Ring instance;
  return instance;
}

}  // namespace riffle
