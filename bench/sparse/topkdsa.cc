#include "bench/sparse/planned_scheme.h"
#include "sparse/layout.h"

namespace riffle::bench {
namespace {

class TopkDsa final : public PlannedScheme {
 public:
  TopkDsa(const SchemeShape& shape, int rank)
      : PlannedScheme(shape, rank),
        regions_({shape.workers, 1, shape.elements, shape.density}),
        slices_(static_cast<std::size_t>(shape.workers)),
        sums_by_region_(slices_.size()),
        received_(slices_.size()) {
    for (int r = 0; r < shape.workers; ++r) {
      for (auto* blocks : {&slices_, &sums_by_region_, &received_}) {
        Block& block = (*blocks)[static_cast<std::size_t>(r)];
        const int region = blocks == &received_ ? rank : r;
        block.begin = regions_.begin_of(region);
        block.elements = regions_.size_of(region);
      }
    }
  }

  Formula formula() const override {
    const auto p = static_cast<std::uint64_t>(workers());
    // A region goes dense where that is shorter: one value for every element, half an entry.
    const std::uint64_t gathered = std::min(k() * (p - 1), elements() * (p - 1) / p);
    return {p - 1 + static_cast<std::uint64_t>(sparse::ceil_log2(workers())), 2 * k() * (p - 1) / p,
            k() * (p - 1) / p + gathered};
  }

 private:
  enum Phase { kSplit, kGather };

  void start() override {
    load();
    selector().top_k(input().data(), sparse::Element::kFloat32, elements(), k(), selected_);
    for (Block& slice : slices_) {
      copy_slice(selected_, slice.begin, slice.begin + slice.elements, slice.entries);
    }
    own().entries = slices_[static_cast<std::size_t>(rank())].entries;
    plan_direct(rank(), workers(), kSplit, kBunch, rounds_);
    plan_gather(rank(), workers(), kGather, rounds_);
  }

  void compose(std::size_t i) override {
    if (round().phase == kGather) return send_gathered(sums_by_region_);
    const int to = round().to[i];
    send_blocks({{to, &slices_[static_cast<std::size_t>(to)]}});
  }

  Status absorb(std::size_t i, Message bytes) override {
    if (round().phase == kGather) return read_gathered(bytes, sums_by_region_);
    Block& block = received_[i];
    if (Status s = read_blocks(bytes, {{rank(), &block}}); !s) return s;
    sums().add_to(own().entries, block.entries);
    return Status::ok();
  }

  void settle() override {
    if (&round() != &rounds_.back()) return;
    blocks_.resize(1);
    blocks_[0].elements = elements();
    blocks_[0].entries.clear();
    for (const Block& block : sums_by_region_) {
      append_moved(block.entries, block.begin, blocks_[0].entries);
    }
    const Reselection timed(*this);
    Block cut;
    selector().keep_top_k(blocks_[0].entries, k(), cut.entries);
    if (rank() == 0) dropped_.push_back(std::move(cut));  // all workers drop the same: counts once
  }

  Block& own() { return sums_by_region_[static_cast<std::size_t>(rank())]; }

  sparse::Layout regions_;
  std::vector<Block> slices_;  // of what was selected, by region
  std::vector<Block> sums_by_region_;
  std::vector<Block> received_;
};

}  // namespace

std::unique_ptr<Scheme> make_topkdsa(const SchemeShape& shape, int rank) {
  return std::make_unique<TopkDsa>(shape, rank);
}

}  // namespace riffle::bench
