#include <algorithm>

#include "bench/sparse/planned_scheme.h"
#include "sparse/exchange.h"

namespace riffle::bench {
namespace {

// The library's exchange behind this benchmark's interface. Every call begins without residual, as
// the other schemes' do; thresholds that are reused stay.
class SparDl final : public Scheme {
 public:
  SparDl(const SchemeShape& shape, int rank, bool reuses)
      : shape_(shape),
        layout_({shape.workers, shape.teams, shape.elements, shape.density}),
        options_(
            {.across = shape.is_recursive ? sparse::Across::kRecursive : sparse::Across::kGathered,
             .selection = reuses ? sparse::Selection::kReuse : sparse::Selection::kExact}),
        position_(position_of(shape, rank)),
        state_(layout_, position_, options_.residual),
        exchange_(layout_, options_, position_) {}

  void prepare(std::span<const float>) override { std::ranges::fill(state_.residual, 0.0F); }
  void begin(std::span<const float> gradient) override {
    gradient_ = gradient;
    exchange_.begin(state_, gradient.data(), sparse::Element::kFloat32, ++call_);
    next_round();
  }
  bool is_done() const override { return exchange_.is_done(); }
  const Round& round() const override { return round_; }
  Message message(std::size_t) override { return exchange_.message(); }
  Status take(std::span<const Message> messages) override {
    if (Status s = exchange_.receive(messages[0]); !s) return s;
    next_round();
    return Status::ok();
  }

  void write_result(std::span<float> out) const override {
    exchange_.write_result(out.data(), sparse::Element::kFloat32);
  }
  void write_undelivered(std::span<float> out) const override {
    std::ranges::copy(state_.residual, out.begin());
  }
  std::uint64_t result_entries() const override {
    std::uint64_t count = 0;
    for (const sparse::Entries& block : exchange_.blocks()) count += block.count();
    return count;
  }
  Sent sent() const override {
    return {exchange_.traffic().messages, exchange_.traffic().entries, exchange_.bytes_sent()};
  }

  // The library does not tell, so the same selections are made once more, exactly: all blocks but
  // those of the first message, which begin() took. Thresholds save more than half of that.
  double reselect_us() override {
    if (options_.selection == sparse::Selection::kReuse) return 0;
    const auto steps = sparse::schedule(layout_, options_.across, position_);
    if (steps[0].phase != sparse::Phase::kReduceScatter) return 0;
    std::vector<bool> is_first(static_cast<std::size_t>(layout_.team_size()));
    for (const int block : steps[0].send) is_first[static_cast<std::size_t>(block)] = true;
    const double start_us = thread_us();
    for (int block = 0; block < layout_.team_size(); ++block) {
      if (is_first[static_cast<std::size_t>(block)]) continue;
      selector_.top_k(gradient_.data() + layout_.begin_of(block), sparse::Element::kFloat32,
                      layout_.size_of(block), layout_.budget_of(block), selected_);
    }
    return thread_us() - start_us;
  }

  Formula formula() const override {
    Formula most;
    for (int position = 0; position < layout_.workers(); ++position) {
      const std::uint64_t budget = layout_.budget_of(layout_.local_rank_of(position));
      const auto teams = static_cast<std::uint64_t>(layout_.teams());
      const auto least = sparse::predicted(layout_, options_.across, position, budget / teams);
      const auto traffic = sparse::predicted(layout_, options_.across, position, budget);
      most.messages = std::max(most.messages, traffic.messages);
      most.least_entries = std::max(most.least_entries, least.entries);
      most.most_entries = std::max(most.most_entries, traffic.entries);
    }
    return most;
  }

 private:
  static int position_of(const SchemeShape& shape, int rank) {
    const auto found = std::ranges::find(shape.order, rank);
    return found == shape.order.end() ? rank : static_cast<int>(found - shape.order.begin());
  }
  int rank_at(int position) const {
    return shape_.order.empty() ? position : shape_.order[static_cast<std::size_t>(position)];
  }
  void next_round() {
    if (exchange_.is_done()) return;
    round_.to = {rank_at(exchange_.to())};
    round_.from = {rank_at(exchange_.from())};
  }

  SchemeShape shape_;
  sparse::Layout layout_;
  sparse::ExchangeOptions options_;
  int position_;
  sparse::ChunkState state_;
  sparse::Exchange exchange_;
  sparse::Selector selector_;
  sparse::Entries selected_;
  std::span<const float> gradient_;
  std::uint32_t call_ = 0;
  Round round_;
};

}  // namespace

std::unique_ptr<Scheme> make_spardl(const SchemeShape& shape, int rank, bool reuses) {
  return std::make_unique<SparDl>(shape, rank, reuses);
}

}  // namespace riffle::bench
