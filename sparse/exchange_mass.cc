// Where every contribution goes: selection, sums, and what stays behind (residual.h).
#include <algorithm>
#include <utility>

#include "sparse/exchange.h"

namespace riffle::sparse {

// Every change of the chunk goes through here, so that it can be undone.
void Exchange::change(std::uint32_t index, float value) {
  originals_.push_back({index, chunk_[index]});
  chunk_[index] = value;
}

void Exchange::sparsify(int block, std::size_t budget, Entries& kept) {
  const auto base = static_cast<std::uint32_t>(layout_.begin_of(block));
  const std::size_t size = layout_.size_of(block);
  if (candidates_[block].are_known) {
    std::swap(kept, candidates_[block].entries);
    candidates_[block].are_known = false;
    selector_.near_top_k_of(chunk_.data() + base, size, budget, thresholds_[block], kept);
  } else if (options_.selection == Selection::kReuse) {
    selector_.near_top_k(chunk_.data() + base, Element::kFloat32, size, budget, thresholds_[block],
                         kept);
  } else {
    selector_.top_k(chunk_.data() + base, Element::kFloat32, size, budget, kept);
  }
  const std::size_t first = sent_.size();
  for (const std::uint32_t index : kept.indices()) {
    change(base + index, 0);
    sent_.push_back({base + index, 0});
  }
  round_values(block, kept, 1);
  if (options_.values == Element::kFloat32) return;
  for (std::size_t i = first; i < sent_.size(); ++i) sent_[i].value = chunk_[sent_[i].index];
}

// What rounding takes away stays here; `copies` workers round the same value, so each keeps its
// part.
void Exchange::round_values(int block, Entries& kept, int copies) {
  if (options_.values == Element::kFloat32) return;
  const auto base = static_cast<std::uint32_t>(layout_.begin_of(block));
  std::size_t left = 0;
  for (std::size_t i = 0; i < kept.count(); ++i) {
    const std::uint32_t index = kept.indices()[i];
    const float value = kept.values()[i];
    const float rounded = rounded_to_bfloat16(value);
    const float error = value - rounded;
    if (error != 0) change(base + index, chunk_[base + index] + error / static_cast<float>(copies));
    if (rounded == 0) continue;
    kept.raw_indices()[left] = index;
    kept.raw_values()[left++] = rounded;
  }
  kept.set_count(left);
}

void Exchange::add_to_chunk(int block, const Entries& received) {
  const auto base = static_cast<std::uint32_t>(layout_.begin_of(block));
  for (std::size_t i = 0; i < received.count(); ++i) {
    const std::uint32_t index = base + received.indices()[i];
    change(index, plus(chunk_[index], received.values()[i]));
  }
  if (candidates_[block].are_known) add_to_candidates(block, received);
}

// What came has changed some of them, made others candidates, and cancelled the rest.
void Exchange::add_to_candidates(int block, const Entries& received) {
  const float* chunk = chunk_.data() + layout_.begin_of(block);
  const std::uint32_t least = std::max(thresholds_[block].magnitude, kLeastMagnitude);
  Entries& candidates = candidates_[block].entries;
  const auto old = candidates.indices();
  sum_.clear();
  std::size_t i = 0;
  for (const std::uint32_t index : received.indices()) {
    while (i < old.size() && old[i] < index) {
      sum_.append(old[i], candidates.values()[i]);
      ++i;
    }
    if (i < old.size() && old[i] == index) ++i;
    if (magnitude_of(chunk[index]) >= least) sum_.append(index, chunk[index]);
  }
  for (; i < old.size(); ++i) sum_.append(old[i], candidates.values()[i]);
  std::swap(candidates, sum_);
}

// dropped_, of the own block: `copies` workers dropped the same values, so each keeps its part.
void Exchange::keep_dropped(int copies) {
  const auto base = static_cast<std::uint32_t>(layout_.begin_of(rank_));
  for (std::size_t i = 0; i < dropped_.count(); ++i) {
    const std::uint32_t index = base + dropped_.indices()[i];
    change(index, chunk_[index] + dropped_.values()[i] / static_cast<float>(copies));
  }
}

void Exchange::take_own_block() {
  const bool offers_fewer = layout_.teams() > 1 && options_.across == Across::kGathered;
  const std::uint64_t budget = offers_fewer ? state_->offer.entries() : layout_.budget_of(rank_);
  sparsify(rank_, budget, offers_[team_]);
}

// In the order of teams, so that all of them make the same sums.
void Exchange::merge_gathered() {
  merged_.clear();
  for (const Entries& offer : offers_) {
    union_size_ = add(merged_, offer, sum_);
    std::swap(merged_, sum_);
  }
  selector_.keep_top_k(merged_, layout_.budget_of(rank_), dropped_);
  keep_dropped(layout_.teams());
  round_values(rank_, merged_, layout_.teams());
  std::swap(offers_[team_], merged_);
}

void Exchange::merge_recursive(int from_team, int copies) {
  const int lower = std::min(team_, from_team);
  const int upper = std::max(team_, from_team);
  add(offers_[lower], offers_[upper], merged_);
  selector_.keep_top_k(merged_, layout_.budget_of(rank_), dropped_);
  keep_dropped(copies);
  round_values(rank_, merged_, copies);
  std::swap(offers_[team_], merged_);
}

void Exchange::commit() {
  switch (options_.residual) {
    case ResidualPolicy::kGlobal:
    case ResidualPolicy::kEf21:
      restore_originals();
      break;
    case ResidualPolicy::kPartial:
      break;
    case ResidualPolicy::kLocal:
      keep_unsent();
      break;
  }
  std::swap(state_->residual, chunk_);
  std::swap(state_->thresholds, thresholds_);
  if (layout_.teams() > 1 && options_.across == Across::kGathered) {
    state_->offer.observe(union_size_);
  }
  if (options_.residual != ResidualPolicy::kEf21) return;
  std::swap(state_->momentum, momentum_next_);
  state_->has_momentum = true;
  for (int block = 0; block < layout_.team_size(); ++block) {
    float* delivered = state_->delivered.data() + layout_.begin_of(block);
    const Entries& entries = final_[block];
    for (std::size_t i = 0; i < entries.count(); ++i) {
      delivered[entries.indices()[i]] += entries.values()[i];
    }
  }
}

// Of indices outside the result. Backwards, so that the first original of an index is the last
// written.
void Exchange::restore_originals() {
  const auto for_result = [&](auto&& act) {
    for (int block = 0; block < layout_.team_size(); ++block) {
      const std::uint64_t base = layout_.begin_of(block);
      for (const std::uint32_t index : final_[block].indices()) act(base + index);
    }
  };
  for_result([&](std::uint64_t i) { in_result_[i / 64] |= std::uint64_t{1} << (i % 64); });
  for (std::size_t i = originals_.size(); i-- > 0;) {
    const Changed& original = originals_[i];
    const std::uint64_t bit = std::uint64_t{1} << (original.index % 64);
    if ((in_result_[original.index / 64] & bit) == 0) chunk_[original.index] = original.value;
  }
  for_result([&](std::uint64_t i) { in_result_[i / 64] = 0; });
}

// The own contribution, but for what was selected here.
void Exchange::keep_unsent() {
  for (std::size_t i = originals_.size(); i-- > 0;) {
    chunk_[originals_[i].index] = originals_[i].value;
  }
  for (const Changed& sent : sent_) chunk_[sent.index] = sent.value;
}

}  // namespace riffle::sparse
