#include "bench/peers/blueconnect/stages.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace riffle::bench {
namespace {

using host::Local;
using host::Primitive;

struct Place {
  std::size_t rack = 0, member = 0;
};

Place place_of(const Racks& racks, int node) {
  for (std::size_t r = 0; r < racks.size(); ++r) {
    const auto at = std::ranges::find(racks[r], node);
    if (at != racks[r].end()) return {r, static_cast<std::size_t>(at - racks[r].begin())};
  }
  return {};
}

// Where the share of member i of m begins, relative to the chunk.
std::size_t border(std::size_t count, std::size_t i, std::size_t m) { return count * i / m; }

// The ring of a rack as one member sees it.
class RackRing {
 public:
  RackRing(const std::vector<int>& members, std::size_t self, const Range& chunk)
      : members_(members), self_(self), chunk_(chunk) {}

  // The member's own share ends up in the result.
  Stage reduce_scatter() const {
    Stage stage = between_neighbours(Kind::kScatter);
    for (std::size_t back = 1; back < size(); ++back) {
      Primitive p = of_share(back);
      p.receive = back > 1;
      p.send = true;
      p.source = Local::kInput;
      stage.primitives.push_back(p);
    }
    Primitive own = of_share(0);
    own.receive = size() > 1;
    own.source = Local::kInput;
    own.target = Local::kOutput;
    stage.primitives.push_back(own);
    return stage;
  }

  Stage all_gather() const {
    Stage stage = between_neighbours(Kind::kGather);
    stage.reads_result = true;
    Primitive own = of_share(0);
    own.send = true;
    own.source = Local::kInput;
    stage.primitives.push_back(own);
    for (std::size_t back = 1; back < size(); ++back) {
      Primitive p = of_share(back);
      p.receive = true;
      p.send = back + 1 < size();
      p.target = Local::kOutput;
      stage.primitives.push_back(p);
    }
    return stage;
  }

 private:
  std::size_t size() const { return members_.size(); }
  Stage between_neighbours(Kind kind) const {
    if (size() == 1) return {kind};
    return {kind, members_[(self_ + size() - 1) % size()], members_[(self_ + 1) % size()]};
  }
  // Of the member that is `back` places behind.
  Primitive of_share(std::size_t back) const {
    const std::size_t member = (self_ + size() - back) % size();
    const std::size_t begin = border(chunk_.count, member, size());
    Primitive p;
    p.source_offset = p.target_offset = chunk_.offset + begin;
    p.count = border(chunk_.count, member + 1, size()) - begin;
    return p;
  }

  const std::vector<int>& members_;
  std::size_t self_;
  Range chunk_;
};

// A stretch of the chunk that has one owner in each rack. Borders are shares of a whole that all
// rack sizes divide, so that they are the same stretches whatever the chunk's size.
struct Stretch {
  std::size_t begin = 0, end = 0, whole = 1;

  std::size_t owner(std::size_t members) const { return begin * members / whole; }
};

std::vector<Stretch> stretches(const Racks& racks) {
  std::size_t whole = 1;
  for (const auto& rack : racks) whole = std::lcm(whole, rack.size());
  std::set<std::size_t> borders = {whole};
  for (const auto& rack : racks) {
    for (std::size_t i = 0; i < rack.size(); ++i) borders.insert(whole / rack.size() * i);
  }
  std::vector<Stretch> all;
  for (auto b = borders.begin(); std::next(b) != borders.end(); ++b) {
    all.push_back({*b, *std::next(b), whole});
  }
  return all;
}

std::vector<Stretch> stretches_of(const Racks& racks, const Place& self) {
  std::vector<Stretch> own = stretches(racks);
  std::erase_if(own,
                [&](const Stretch& s) { return s.owner(racks[self.rack].size()) != self.member; });
  return own;
}

int owner_in(const Racks& racks, std::size_t rack, const Stretch& stretch) {
  const auto& members = racks[rack % racks.size()];
  return members[stretch.owner(members.size())];
}

// The ring all-reduce of one stretch among its owners, in the result's buffer.
Stage across(const Racks& racks, std::size_t rack, const Stretch& stretch, const Range& chunk,
             std::size_t element_bytes) {
  const std::size_t n = racks.size();
  const std::size_t begin = border(chunk.count, stretch.begin, stretch.whole);
  const std::size_t count = border(chunk.count, stretch.end, stretch.whole) - begin;
  Stage stage{Kind::kAcross, owner_in(racks, rack + n - 1, stretch),
              owner_in(racks, rack + 1, stretch), true};
  const host::Part part{chunk.offset + begin, count, std::max<std::size_t>(count, 1)};
  stage.primitives =
      host::ring_all_reduce(part, {static_cast<int>(rack), static_cast<int>(n)}, element_bytes);
  return stage;
}

}  // namespace

std::vector<Stage> blueconnect_stages(const Racks& racks, int node, const Range& chunk,
                                      std::size_t element_bytes) {
  if (chunk.count == 0) return {};
  const Place self = place_of(racks, node);
  const RackRing ring(racks[self.rack], self.member, chunk);
  std::vector<Stage> stages = {ring.reduce_scatter()};
  if (racks.size() > 1) {
    for (const Stretch& stretch : stretches_of(racks, self)) {
      stages.push_back(across(racks, self.rack, stretch, chunk, element_bytes));
    }
  }
  if (racks[self.rack].size() > 1) stages.push_back(ring.all_gather());
  return stages;
}

Neighbours blueconnect_neighbours(const Racks& racks, int node, Kind kind) {
  std::set<int> from, to;
  for (const Stage& stage : blueconnect_stages(racks, node, {0, 1}, 1)) {
    if (stage.kind == kind && stage.from >= 0) from.insert(stage.from);
    if (stage.kind == kind && stage.to >= 0) to.insert(stage.to);
  }
  return {{from.begin(), from.end()}, {to.begin(), to.end()}};
}

std::size_t largest_chunk(const Racks& racks, std::size_t step) {
  const auto least = std::ranges::min(racks, {}, [](const auto& rack) { return rack.size(); });
  return step * least.size();
}

}  // namespace riffle::bench
