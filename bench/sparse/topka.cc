#include "bench/sparse/planned_scheme.h"

namespace riffle::bench {
namespace {

class TopkA final : public PlannedScheme {
 public:
  TopkA(const SchemeShape& shape, int rank) : PlannedScheme(shape, rank) {}

  Formula formula() const override {
    const auto others = static_cast<std::uint64_t>(workers() - 1);
    return {static_cast<std::uint64_t>(sparse::ceil_log2(workers())), k() * others, k() * others};
  }

 private:
  void start() override {
    load();
    selector().top_k(input().data(), sparse::Element::kFloat32, elements(), k(), selected_);
    items_.resize(static_cast<std::size_t>(workers()));
    for (Block& item : items_) item.elements = elements();
    items_[static_cast<std::size_t>(rank())].entries = selected_;
    plan_gather(rank(), workers(), 0, rounds_);
  }
  void compose(std::size_t) override { send_gathered(items_); }
  Status absorb(std::size_t, Message bytes) override { return read_gathered(bytes, items_); }

  void settle() override {
    if (&round() != &rounds_.back()) return;
    lists_.clear();
    for (Block& item : items_) lists_.push_back(std::move(item.entries));
    blocks_.resize(1);
    blocks_[0].elements = elements();
    blocks_[0].entries = sums().sum(lists_);
    for (std::size_t i = 0; i < items_.size(); ++i) items_[i].entries = std::move(lists_[i]);
    const Reselection timed(*this);
    Block cut;
    selector().keep_top_k(blocks_[0].entries, k(), cut.entries);
    if (rank() == 0) dropped_.push_back(std::move(cut));  // all workers drop the same: counts once
  }

  std::vector<Block> items_;  // by rank
  std::vector<sparse::Entries> lists_;
};

}  // namespace

std::unique_ptr<Scheme> make_topka(const SchemeShape& shape, int rank) {
  return std::make_unique<TopkA>(shape, rank);
}

}  // namespace riffle::bench
