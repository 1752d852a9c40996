#include "bench/sparse/planned_scheme.h"

namespace riffle::bench {
namespace {

// Level l of the tree joins ranks that differ in bit l: the one that has it sends its k entries to
// the other and is out. Ranks that do not exist have nothing to send. The broadcast doubles those
// who know: in step s, rank r < 2^s sends to r + 2^s.
class GTopk final : public PlannedScheme {
 public:
  GTopk(const SchemeShape& shape, int rank) : PlannedScheme(shape, rank) {}

  Formula formula() const override {  // the root sends to log2 P, one after the other
    const auto levels = static_cast<std::uint64_t>(sparse::ceil_log2(workers()));
    return {levels, k() * levels, k() * levels};
  }

 private:
  enum Phase { kTree, kBroadcast };

  void start() override {
    load();
    selector().top_k(input().data(), sparse::Element::kFloat32, elements(), k(), selected_);
    blocks_.resize(1);
    blocks_[0].elements = received_.elements = elements();
    blocks_[0].entries = selected_;
    for (int gap = 1; gap < workers(); gap *= 2) {
      if (rank() % (2 * gap) == gap) {
        rounds_.push_back({.to = {rank() - gap}, .phase = kTree});
        break;
      }
      if (rank() + gap < workers()) rounds_.push_back({.from = {rank() + gap}, .phase = kTree});
    }
    for (int gap = 1; gap < workers(); gap *= 2) {
      if (rank() < gap && rank() + gap < workers()) {
        Round round;
        round.to = {rank() + gap};
        round.waits_for_delivery = true;
        round.phase = kBroadcast;
        rounds_.push_back(std::move(round));
      } else if (rank() >= gap && rank() < 2 * gap) {
        rounds_.push_back({.from = {rank() - gap}, .phase = kBroadcast});
      }
    }
  }

  void compose(std::size_t) override { send_blocks({{0, blocks_.data()}}); }

  Status absorb(std::size_t, Message bytes) override {
    if (round().phase == kBroadcast) return read_blocks(bytes, {{0, blocks_.data()}});
    if (Status s = read_blocks(bytes, {{0, &received_}}); !s) return s;
    sums().add_to(blocks_[0].entries, received_.entries);
    const Reselection timed(*this);
    Block cut;
    selector().keep_top_k(blocks_[0].entries, k(), cut.entries);
    dropped_.push_back(std::move(cut));
    return Status::ok();
  }

  Block received_;
};

}  // namespace

std::unique_ptr<Scheme> make_gtopk(const SchemeShape& shape, int rank) {
  return std::make_unique<GTopk>(shape, rank);
}

}  // namespace riffle::bench
