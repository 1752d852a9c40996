#include <algorithm>
#include <cmath>

#include "bench/sparse/planned_scheme.h"

namespace riffle::bench {
namespace {

// As published, with the numbers of the authors' code.
constexpr std::uint32_t kExactEvery = 32;    // calls between exact thresholds
constexpr std::uint32_t kBalanceEvery = 64;  // calls between new regions
constexpr float kLocalStep = 1.012F, kLocalRaise = 1.03F, kGlobalStep = 1.008F;
constexpr int kMostRaises = 5;
constexpr std::uint64_t kUneven = 4;  // times the mean: then pieces are evened out

class OkTopk final : public PlannedScheme {
 public:
  OkTopk(const SchemeShape& shape, int rank)
      : PlannedScheme(shape, rank),
        slices_(static_cast<std::size_t>(shape.workers)),
        owned_(slices_.size()),
        pieces_(slices_.size()),
        received_(slices_.size()),
        quantiles_(slices_.size()),
        counts_(slices_.size()) {}

  Formula formula() const override {
    const auto p = static_cast<std::uint64_t>(workers());
    // Two gathers: of the counts, which say whether pieces must be evened out, and of the entries.
    return {p - 1 + 2 * static_cast<std::uint64_t>(sparse::ceil_log2(workers())), k() * (p - 1) / p,
            3 * k() * (p - 1) / p};
  }

 private:
  enum Phase { kQuantiles, kSplit, kSums, kCounts, kEven, kPieces };

  void start() override {
    is_exact_ = calls_ % kExactEvery == 0;
    const bool balances = calls_ % kBalanceEvery == 0;
    ++calls_;
    select();
    if (balances) {
      own_quantiles();
      plan_gather(rank(), workers(), kQuantiles, rounds_);
    } else {
      cut_to_slices();
    }
    plan_direct(rank(), workers(), kSplit, kBunch, rounds_);
    plan_gather(rank(), workers(), is_exact_ ? kSums : kCounts, rounds_);
    if (!is_exact_) plan_gather(rank(), workers(), kPieces, rounds_);
  }

  // Local selection by a threshold that moves a little where the count strays from k.
  void select() {
    if (is_exact_ || !(local_ > 0)) {
      load();
      selector().top_k(input().data(), sparse::Element::kFloat32, elements(), k(), selected_);
      local_ = sparse::from_magnitude(least_magnitude(selected_));
      return;
    }
    load_and_select(sparse::magnitude_of(local_));
    for (int i = 0; i < kMostRaises && 3 * selected_.count() > 4 * k(); ++i) {
      local_ *= kLocalRaise;
      selector().at_least(input().data(), sparse::Element::kFloat32, elements(),
                          sparse::magnitude_of(local_), selected_);
    }
    if (3 * selected_.count() < 2 * k()) local_ /= kLocalStep;
    if (4 * selected_.count() > 5 * k()) local_ *= kLocalStep;
  }

  // Where P equal shares of what is selected here would end.
  void own_quantiles() {
    auto& mine = quantiles_[static_cast<std::size_t>(rank())];
    mine.clear();
    const std::size_t share = selected_.count() / static_cast<std::size_t>(workers());
    for (int r = 1; r < workers(); ++r) {
      const std::size_t at = share * static_cast<std::size_t>(r);
      mine.push_back(at < selected_.count() ? selected_.indices()[at] : 0);
    }
  }
  // Regions end at the mean of what the workers would like.
  void balance_regions() {
    std::uint64_t begin = 0;
    for (int r = 0; r < workers(); ++r) {
      std::uint64_t end = elements();
      if (r + 1 < workers()) {
        end = 0;
        for (const auto& quantiles : quantiles_) end += quantiles[static_cast<std::size_t>(r)];
        end = std::max(end / static_cast<std::uint64_t>(workers()), begin);
      }
      for (auto* blocks : {&slices_, &owned_}) {
        (*blocks)[static_cast<std::size_t>(r)].begin = begin;
        (*blocks)[static_cast<std::size_t>(r)].elements = end - begin;
      }
      begin = end;
    }
  }
  void cut_to_slices() {
    for (Block& slice : slices_) {
      copy_slice(selected_, slice.begin, slice.begin + slice.elements, slice.entries);
    }
    own().entries = slices_[static_cast<std::size_t>(rank())].entries;
  }

  void compose(std::size_t i) override {
    switch (round().phase) {
      case kQuantiles: {
        std::vector<std::uint32_t> numbers;
        for (const int item : gathered_items(rank(), workers(), round().step)) {
          const auto& one = quantiles_[static_cast<std::size_t>(item)];
          numbers.insert(numbers.end(), one.begin(), one.end());
        }
        return send_numbers(numbers);
      }
      case kSplit: {
        const int to = round().to[i];
        return send_blocks({{to, &slices_[static_cast<std::size_t>(to)]}});
      }
      case kSums:
        return send_gathered(owned_);
      case kCounts: {
        std::vector<std::uint32_t> numbers;
        for (const int item : gathered_items(rank(), workers(), round().step)) {
          numbers.push_back(counts_[static_cast<std::size_t>(item)]);
        }
        return send_numbers(numbers);
      }
      case kEven:
        return send_blocks({{rank(), &outgoing_[i]}});
      default:
        return send_gathered(gathered());
    }
  }

  Status absorb(std::size_t i, Message bytes) override {
    switch (round().phase) {
      case kQuantiles: {
        const auto each = static_cast<std::size_t>(workers() - 1);
        const auto items = gathered_items(rank() + round().step, workers(), round().step);
        std::vector<std::uint32_t> numbers(items.size() * each);
        if (Status s = read_numbers(bytes, numbers); !s) return s;
        for (std::size_t n = 0; n < items.size(); ++n) {
          const auto from = numbers.begin() + static_cast<std::ptrdiff_t>(n * each);
          quantiles_[static_cast<std::size_t>(items[n])].assign(
              from, from + static_cast<std::ptrdiff_t>(each));
        }
        return Status::ok();
      }
      case kSplit: {
        Block& block = received_[i];
        block.elements = own().elements;
        if (Status s = read_blocks(bytes, {{rank(), &block}}); !s) return s;
        sums().add_to(own().entries, block.entries);
        return Status::ok();
      }
      case kSums:
        return read_gathered(bytes, owned_);
      case kCounts: {
        const auto items = gathered_items(rank() + round().step, workers(), round().step);
        std::vector<std::uint32_t> numbers(items.size());
        if (Status s = read_numbers(bytes, numbers); !s) return s;
        for (std::size_t n = 0; n < items.size(); ++n) {
          counts_[static_cast<std::size_t>(items[n])] = numbers[n];
        }
        return Status::ok();
      }
      case kEven: {
        Block& block = received_[i];
        block.elements = elements();
        const int from = round().from[i];
        if (Status s = read_blocks(bytes, {{from, &block}}); !s) return s;
        Block& mine = pieces_[static_cast<std::size_t>(rank())];
        // Senders are in ascending order, but what was here already may belong in front or behind.
        sums().add_to(mine.entries, block.entries);
        return Status::ok();
      }
      default:
        return read_gathered(bytes, gathered());
    }
  }

  void settle() override {
    const int phase = round().phase;
    const bool is_last = &round() == &rounds_.back();
    const bool ends = is_last || (&round())[1].phase != phase;
    if (!ends) return;
    if (phase == kQuantiles) {
      balance_regions();
      cut_to_slices();
    } else if (phase == kSplit && !is_exact_) {
      cut_own();
    } else if (phase == kCounts) {
      even_out();
    }
    if (is_last) finish();
  }

  void cut_own() {
    const Reselection timed(*this);
    Block cut;
    cut.begin = own().begin;
    cut_below(own().entries, sparse::magnitude_of(global_), cut.entries);
    dropped_.push_back(std::move(cut));
    counts_[static_cast<std::size_t>(rank())] = static_cast<std::uint32_t>(own().entries.count());
  }

  // All entries in order, cut into equal pieces: every worker sends what of its own lies in
  // others'.
  void even_out() {
    std::vector<std::uint64_t> ends;
    std::uint64_t total = 0;
    for (const std::uint32_t count : counts_) ends.push_back(total += count);
    const auto p = static_cast<std::uint64_t>(workers());
    is_even_ = *std::ranges::max_element(counts_) * p > kUneven * total;
    if (!is_even_) return;
    const auto begin_of_piece = [&](std::uint64_t r) { return r * total / p; };
    const auto begin_of_owned = [&](std::size_t r) { return r == 0 ? 0 : ends[r - 1]; };
    const auto me = static_cast<std::size_t>(rank());
    Round round;
    round.phase = kEven;
    outgoing_.clear();
    for (std::size_t r = 0; r < counts_.size(); ++r) {
      pieces_[r].elements = elements();
      // Counted in all entries: what of mine is r's, and what of r's is mine.
      const std::uint64_t first = std::max(begin_of_owned(me), begin_of_piece(r));
      const std::uint64_t last = std::min(ends[me], begin_of_piece(r + 1));
      if (r == me) pieces_[r].entries.clear();
      if (first < last) {
        Block part;
        part.elements = elements();
        for (std::uint64_t e = first; e < last; ++e) {
          const auto i = static_cast<std::size_t>(e - begin_of_owned(me));
          part.entries.append(own().entries.indices()[i] + static_cast<std::uint32_t>(own().begin),
                              own().entries.values()[i]);
        }
        if (r == me) {
          pieces_[r].entries = std::move(part.entries);
        } else {
          round.to.push_back(static_cast<int>(r));
          outgoing_.push_back(std::move(part));
        }
      }
      if (r != me && std::max(begin_of_owned(r), begin_of_piece(me)) <
                         std::min(ends[r], begin_of_piece(me + 1))) {
        round.from.push_back(static_cast<int>(r));
      }
    }
    if (round.to.empty() && round.from.empty()) return;
    const auto next = std::ranges::find(rounds_, static_cast<int>(kPieces), &Round::phase);
    rounds_.insert(next, std::move(round));
  }

  std::span<const Block> result() const override {
    return is_exact_ ? blocks_ : is_even_ ? pieces_ : owned_;
  }

  void finish() {
    if (!is_exact_) {
      const std::uint64_t count = result_entries();
      if (3 * count < 2 * k()) global_ /= kGlobalStep;
      if (3 * count > 4 * k()) global_ *= kGlobalStep;
      return;
    }
    blocks_.resize(1);
    blocks_[0].elements = elements();
    blocks_[0].entries.clear();
    for (const Block& block : owned_) {
      append_moved(block.entries, block.begin, blocks_[0].entries);
    }
    const Reselection timed(*this);
    Block cut;
    selector().keep_top_k(blocks_[0].entries, k(), cut.entries);
    global_ = sparse::from_magnitude(least_magnitude(blocks_[0].entries));
    if (rank() == 0) dropped_.push_back(std::move(cut));  // all workers drop the same: counts once
  }

  Block& own() { return owned_[static_cast<std::size_t>(rank())]; }
  std::vector<Block>& gathered() { return is_even_ ? pieces_ : owned_; }

  std::uint32_t calls_ = 0;
  bool is_exact_ = true, is_even_ = false;
  float local_ = 0, global_ = 0;
  std::vector<Block> slices_;    // of what was selected, by region
  std::vector<Block> owned_;     // sums, by region; own() first, then all
  std::vector<Block> pieces_;    // the same, evened out, by piece
  std::vector<Block> outgoing_;  // parts of other workers' pieces
  std::vector<Block> received_;
  std::vector<std::vector<std::uint32_t>> quantiles_;  // by worker
  std::vector<std::uint32_t> counts_;                  // of entries in each region
};

}  // namespace

std::unique_ptr<Scheme> make_oktopk(const SchemeShape& shape, int rank) {
  return std::make_unique<OkTopk>(shape, rank);
}

}  // namespace riffle::bench
