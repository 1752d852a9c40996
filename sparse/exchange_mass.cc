// Where every contribution goes: selection, sums, and what stays behind (residual.h).
#include <algorithm>
#include <utility>

#include "sparse/exchange.h"

namespace riffle::sparse {
namespace {

constexpr std::size_t kAhead = 24;  // entries: the elements that they name lie all over the chunk

}  // namespace

void Exchange::sparsify(int block, std::size_t budget, Entries& kept) {
  if (!select_candidates(block, budget, kept)) {
    if (touched_[block].has_candidates) thresholds_[block].magnitude = 0;  // all is known to be few
    scan(block, budget, kept);
    note_left(block, kept);
  }
  round_values(kept);
}

// False, and nothing is changed, where they are not known, or too few with what came.
bool Exchange::select_candidates(int block, std::size_t budget, Entries& kept) {
  Touched& touched = touched_[block];
  if (!touched.has_candidates) return false;
  const std::uint32_t least = std::max(thresholds_[block].magnitude, kLeastMagnitude);
  const std::size_t count = touched.entries.count();
  const std::uint32_t* indices = touched.entries.indices().data();
  const float* values = touched.entries.values().data();
  kept.make_room(count);
  std::size_t found = 0;
  for (std::size_t i = 0; i < count; ++i) {
    kept.raw_indices()[found] = indices[i];
    kept.raw_values()[found] = values[i];
    found += magnitude_of(values[i]) >= least ? 1 : 0;
  }
  kept.set_count(found);
  if (!selector_.near_top_k_of(budget, thresholds_[block], kept)) return false;
  const bool is_whole = options_.values == Element::kFloat32 &&
                        options_.residual != ResidualPolicy::kLocal && kept.count() == found;
  if (!is_whole) {
    note_left(block, kept);
    return true;
  }
  // All that reach the threshold are sent, and leave nothing: no need to look each up.
  for (float& v : touched.entries.values()) v = magnitude_of(v) >= least ? 0 : v;
  return true;
}

// The whole block, with what others sent put into the chunk for as long as that takes.
void Exchange::scan(int block, std::size_t budget, Entries& kept) {
  float* chunk = chunk_.data() + layout_.begin_of(block);
  const std::size_t size = layout_.size_of(block);
  Entries& touched = touched_[block].entries;
  const auto swap_with_chunk = [&] {
    for (std::size_t i = 0; i < touched.count(); ++i) {
      std::swap(chunk[touched.indices()[i]], touched.values()[i]);
    }
  };
  swap_with_chunk();
  if (options_.selection == Selection::kReuse) {
    selector_.near_top_k(chunk, Element::kFloat32, size, budget, thresholds_[block], kept);
  } else {
    selector_.top_k(chunk, Element::kFloat32, size, budget, kept);
  }
  swap_with_chunk();
}

// From now on the block's touched elements are what stays of them: of what is sent the rounding
// error, of what came and is not sent all.
void Exchange::note_left(int block, const Entries& kept) {
  const bool rounds = options_.values != Element::kFloat32;
  const bool keeps_unsent = options_.residual != ResidualPolicy::kLocal;
  Entries& touched = touched_[block].entries;
  const std::uint32_t* indices = touched.indices().data();
  const float* values = touched.values().data();
  const std::size_t count = touched.count();
  sum_.make_room(count + kept.count());
  std::size_t i = 0, end = 0;
  const auto put = [&](std::uint32_t index, float value) {
    sum_.raw_indices()[end] = index;
    sum_.raw_values()[end++] = value;
  };
  for (std::size_t j = 0; j < kept.count(); ++j) {
    const std::uint32_t index = kept.indices()[j];
    for (; i < count && indices[i] < index; ++i) {
      if (keeps_unsent) put(indices[i], values[i]);
    }
    if (i < count && indices[i] == index) ++i;
    const float value = kept.values()[j];
    put(index, rounds ? value - rounded_to_bfloat16(value) : 0);
  }
  for (; i < count && keeps_unsent; ++i) put(indices[i], values[i]);
  sum_.set_count(end);
  std::swap(touched, sum_);
}

// As they travel. What rounds to zero does not.
void Exchange::round_values(Entries& kept) const {
  if (options_.values == Element::kFloat32) return;
  std::size_t left = 0;
  for (std::size_t i = 0; i < kept.count(); ++i) {
    const float rounded = rounded_to_bfloat16(kept.values()[i]);
    if (rounded == 0) continue;
    kept.raw_indices()[left] = kept.indices()[i];
    kept.raw_values()[left++] = rounded;
  }
  kept.set_count(left);
}

void Exchange::add_to_touched(int block, const Entries& received) {
  const float* chunk = chunk_.data() + layout_.begin_of(block);
  Entries& touched = touched_[block].entries;
  const std::size_t old_count = touched.count();
  const std::uint32_t* old_indices = touched.indices().data();
  const float* old_values = touched.values().data();
  const std::size_t new_count = received.count();
  const std::uint32_t* new_indices = received.indices().data();
  const float* new_values = received.values().data();
  sum_.make_room(old_count + new_count);
  std::uint32_t* indices = sum_.raw_indices();
  float* values = sum_.raw_values();
  std::size_t i = 0, j = 0, end = 0;
  for (; i < old_count && j < new_count; ++end) {  // without branches: the order is random
    __builtin_prefetch(chunk + new_indices[std::min(j + kAhead, new_count - 1)]);
    const bool takes_old = old_indices[i] <= new_indices[j];
    const bool takes_new = new_indices[j] <= old_indices[i];
    const float was = *(takes_old ? old_values + i : chunk + new_indices[j]);
    const float sum = plus(was, new_values[j]);
    indices[end] = takes_old ? old_indices[i] : new_indices[j];
    values[end] = takes_new ? sum : was;
    i += takes_old ? 1 : 0;
    j += takes_new ? 1 : 0;
  }
  for (; i < old_count; ++i, ++end) {
    indices[end] = old_indices[i];
    values[end] = old_values[i];
  }
  for (; j < new_count; ++j, ++end) {
    __builtin_prefetch(chunk + new_indices[std::min(j + kAhead, new_count - 1)]);
    indices[end] = new_indices[j];
    values[end] = plus(chunk[new_indices[j]], new_values[j]);
  }
  sum_.set_count(end);
  std::swap(touched, sum_);
}

// dropped_, of the own block: `copies` workers dropped the same values, so each keeps its part.
void Exchange::return_dropped(int copies) {
  for (std::size_t i = 0; i < dropped_.count(); ++i) {
    returned_.push_back({dropped_.indices()[i], dropped_.values()[i] / static_cast<float>(copies)});
  }
}

// merged_, of the own block: `copies` workers round the same, so each keeps its part of the errors.
void Exchange::round_merged(int copies) {
  if (options_.values == Element::kFloat32) return;
  for (std::size_t i = 0; i < merged_.count(); ++i) {
    const float value = merged_.values()[i];
    const float error = value - rounded_to_bfloat16(value);
    if (error == 0) continue;
    returned_.push_back({merged_.indices()[i], error / static_cast<float>(copies)});
  }
  round_values(merged_);
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
  return_dropped(layout_.teams());
  round_merged(layout_.teams());
  std::swap(offers_[team_], merged_);
}

void Exchange::merge_recursive(int from_team, int copies) {
  const int lower = std::min(team_, from_team);
  const int upper = std::max(team_, from_team);
  add(offers_[lower], offers_[upper], merged_);
  selector_.keep_top_k(merged_, layout_.budget_of(rank_), dropped_);
  return_dropped(copies);
  round_merged(copies);
  std::swap(offers_[team_], merged_);
}

void Exchange::commit() {
  commit_residual();
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

// With global residuals an element that is not in the result stays as it was here.
void Exchange::commit_residual() {
  const bool is_local = options_.residual == ResidualPolicy::kLocal;
  const bool changes_all = is_local || options_.residual == ResidualPolicy::kPartial;
  for (int block = 0; block < layout_.team_size(); ++block) {
    float* chunk = chunk_.data() + layout_.begin_of(block);
    const auto left = touched_[block].entries.indices();
    const auto values = touched_[block].entries.values();
    const auto result = final_[block].indices();
    for (std::size_t i = 0, j = 0; i < left.size(); ++i) {
      if (i + kAhead < left.size()) __builtin_prefetch(chunk + left[i + kAhead], 1);
      while (j < result.size() && result[j] < left[i]) ++j;
      if (changes_all || (j < result.size() && result[j] == left[i])) chunk[left[i]] = values[i];
    }
  }
  const auto base = static_cast<std::uint32_t>(layout_.begin_of(rank_));
  for (const Changed& part : returned_) {
    if (is_local) break;
    if (!changes_all && !std::ranges::binary_search(final_[rank_].indices(), part.index)) continue;
    chunk_[base + part.index] += part.value;
  }
}

}  // namespace riffle::sparse
