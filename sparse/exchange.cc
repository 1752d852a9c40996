#include "sparse/exchange.h"

#include <algorithm>
#include <bit>
#include <string>

#include "topology/base/check.h"

namespace riffle::sparse {

namespace {

constexpr std::size_t kFew = 256;  // entries, whatever the budget

}  // namespace

Status validate(const Layout& layout, const ExchangeOptions& options) {
  if (options.across == Across::kRecursive &&
      !std::has_single_bit(static_cast<unsigned>(layout.teams()))) {
    return invalid_argument("sparse exchange: teams is " + std::to_string(layout.teams()) +
                            ", accepted by the recursive exchange: a power of two");
  }
  if (options.values == Element::kFloat16) {
    return invalid_argument("sparse exchange: values is float16, accepted: float32, bfloat16");
  }
  if (!(options.momentum_rate > 0 && options.momentum_rate <= 1)) {
    return invalid_argument("sparse exchange: momentum rate is " +
                            std::to_string(options.momentum_rate) + ", accepted: above 0, up to 1");
  }
  return Status::ok();
}

Exchange::Exchange(const Layout& layout, const ExchangeOptions& options, int position)
    : layout_(layout),
      options_(options),
      team_(layout.team_of(position)),
      rank_(layout.local_rank_of(position)),
      steps_(schedule(layout, options.across, position)),
      at_(steps_.size()),
      selector_(options.isa),
      chunk_(layout.shape().elements),
      momentum_next_(options.residual == ResidualPolicy::kEf21 ? chunk_.size() : 0),
      touched_(static_cast<std::size_t>(layout.team_size())),
      offers_(static_cast<std::size_t>(layout.teams())),
      final_(static_cast<std::size_t>(layout.team_size())) {
  const Status valid = validate(layout, options);
  RIFFLE_CHECK(valid.is_ok(), valid.message());
}

void Exchange::set_density(double density) {
  RIFFLE_CHECK(is_done(), "a call is under way");
  Shape shape = layout_.shape();
  shape.density = density;
  layout_ = Layout(shape);
}

void Exchange::begin(ChunkState& state, const void* gradient, Element element,
                     std::uint32_t sequence) {
  RIFFLE_CHECK(state.residual.size() == chunk_.size() && state.thresholds.size() == final_.size() &&
                   state.momentum.size() >= momentum_next_.size(),
               "a state of another layout or policy");
  state_ = &state;
  sequence_ = sequence;
  thresholds_ = state.thresholds;
  at_ = 0;
  own_taken_ = own_final_ = non_finite_ = keeps_state_ = false;
  returned_.clear();
  union_size_ = 0;
  traffic_ = {};
  bytes_sent_ = 0;
  load_chunk(gradient, element);
  settle();
}

void Exchange::load_chunk(const void* gradient, Element element) {
  const std::size_t count = chunk_.size();
  for (Touched& block : touched_) {
    block.entries.clear();
    block.has_candidates = false;
  }
  if (options_.residual != ResidualPolicy::kEf21) {
    if (options_.selection == Selection::kReuse) return load_and_collect(gradient, element);
    selector_.accumulate(gradient, element, state_->residual.data(), count, chunk_.data());
    return;
  }
  std::ranges::fill(chunk_, 0.0F);
  selector_.accumulate(gradient, element, chunk_.data(), count, momentum_next_.data());
  const float rate = state_->has_momentum ? options_.momentum_rate : 1.0F;
  for (std::size_t i = 0; i < count; ++i) {
    const float v = state_->momentum[i];
    momentum_next_[i] = v + rate * (momentum_next_[i] - v);
    chunk_[i] = (momentum_next_[i] - v) + state_->residual[i];
  }
}

void Exchange::load_and_collect(const void* gradient, Element element) {
  for (int block = 0; block < layout_.team_size(); ++block) {
    const std::uint64_t base = layout_.begin_of(block);
    const std::size_t size = layout_.size_of(block);
    const void* from = static_cast<const char*>(gradient) + base * size_of(element);
    const float* residual = state_->residual.data() + base;
    float* to = chunk_.data() + base;
    const std::uint32_t least = thresholds_[block].magnitude;
    if (least == 0) {
      selector_.accumulate(from, element, residual, size, to);
      continue;
    }
    // Far more, and the threshold is of no use.
    const std::size_t most = std::min<std::size_t>(size, 2 * layout_.budget_of(block) + kFew);
    touched_[block].has_candidates = selector_.accumulate_and_collect(
        from, element, residual, size, to, least, most, touched_[block].entries);
  }
}

int Exchange::to() const {
  RIFFLE_CHECK(!is_done(), "nothing is left to send");
  return steps_[at_].to;
}

int Exchange::from() const {
  RIFFLE_CHECK(!is_done(), "nothing is left to receive");
  return steps_[at_].from;
}

std::span<const std::uint8_t> Exchange::message() {
  RIFFLE_CHECK(!is_done(), "nothing is left to send");
  return writer_.bytes();
}

BlockShape Exchange::shape_of(Phase phase, int label) const {
  const int block = phase == Phase::kAcross ? rank_ : label;
  return {static_cast<std::uint32_t>(label), layout_.size_of(block)};
}

void Exchange::settle() {
  const auto left = [&](Phase phase) { return !is_done() && steps_[at_].phase == phase; };
  if (!own_taken_ && !left(Phase::kReduceScatter)) {
    take_own_block();
    own_taken_ = true;
  }
  if (own_taken_ && !own_final_ && !left(Phase::kAcross)) {
    if (options_.across == Across::kGathered && layout_.teams() > 1) merge_gathered();
    std::swap(final_[rank_], offers_[team_]);
    own_final_ = true;
  }
  if (is_done()) {
    finish();
  } else {
    prepare_message();
  }
}

void Exchange::prepare_message() {
  const Step& step = steps_[at_];
  writer_.begin({options_.values, static_cast<std::uint16_t>(at_), sequence_}, step.send.size());
  for (const int label : step.send) {
    const Entries* entries = nullptr;
    switch (step.phase) {
      case Phase::kReduceScatter:
        sparsify(label, layout_.budget_of(label), merged_);
        entries = &merged_;
        break;
      case Phase::kAcross:
        entries = &offers_[label];
        break;
      case Phase::kAllGather:
        entries = &final_[label];
        break;
    }
    writer_.add(shape_of(step.phase, label), *entries);
    traffic_.entries += entries->count();
  }
  ++traffic_.messages;
  bytes_sent_ += writer_.bytes().size();
}

Status Exchange::receive(std::span<const std::uint8_t> bytes) {
  RIFFLE_CHECK(!is_done(), "nothing is left to receive");
  const Step& step = steps_[at_];
  shapes_.clear();
  for (const int label : step.receive) shapes_.push_back(shape_of(step.phase, label));
  if (bag_.size() < shapes_.size()) bag_.resize(shapes_.size());
  const Status read =
      read_message(bytes, {options_.values, static_cast<std::uint16_t>(at_), sequence_}, shapes_,
                   {bag_.data(), shapes_.size()});
  if (!read) {
    return remote_error("from position " + std::to_string(step.from) + " in step " +
                        std::to_string(at_) + ": " + read.message());
  }
  take(step.phase, step);
  ++at_;
  settle();
  return Status::ok();
}

void Exchange::take(Phase phase, const Step& step) {
  for (std::size_t i = 0; i < step.receive.size(); ++i) {
    const int label = step.receive[i];
    switch (phase) {
      case Phase::kReduceScatter:
        add_to_touched(label, bag_[i]);
        break;
      case Phase::kAcross:
        std::swap(offers_[label], bag_[i]);
        break;
      case Phase::kAllGather:
        std::swap(final_[label], bag_[i]);
        break;
    }
  }
  if (phase == Phase::kAcross && options_.across == Across::kRecursive) {
    // After exchanging along the highest bit two teams hold the same, then four, ...
    const int partner = step.receive[0];
    merge_recursive(partner, layout_.teams() / (partner ^ team_));
  }
}

void Exchange::finish() {
  for (const Entries& block : final_) {
    bool has_others = false;
    for (const float v : block.values()) has_others |= !is_finite(v);
    non_finite_ = non_finite_ || has_others;
  }
  if (!non_finite_) {
    if (!keeps_state_) commit();
    return;
  }
  for (Entries& block : final_) {  // only what a dense sum would have made of it
    std::size_t kept = 0;
    for (std::size_t i = 0; i < block.count(); ++i) {
      if (is_finite(block.values()[i])) continue;
      block.raw_indices()[kept] = block.indices()[i];
      block.raw_values()[kept++] = block.values()[i];
    }
    block.set_count(kept);
  }
}

void Exchange::write_result(void* out, Element element) const {
  RIFFLE_CHECK(is_done() && state_ != nullptr, "the call is not done");
  const std::size_t count = chunk_.size();
  if (options_.residual == ResidualPolicy::kEf21) {
    for (std::size_t i = 0; i < count; ++i) store(out, element, i, state_->delivered[i]);
    if (!non_finite_) return;
  } else {
    std::memset(out, 0, count * size_of(element));
  }
  for (int block = 0; block < layout_.team_size(); ++block) {
    const Entries& entries = final_[block];
    const std::uint64_t base = layout_.begin_of(block);
    for (std::size_t i = 0; i < entries.count(); ++i) {
      store(out, element, base + entries.indices()[i], entries.values()[i]);
    }
  }
}

}  // namespace riffle::sparse
