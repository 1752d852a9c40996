#include "bench/sparse/planned_scheme.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace riffle::bench {

using sparse::Entries;

Round gather_round(int rank, int workers, int phase, int gap) {
  Round round;
  round.to = {(rank + workers - gap) % workers};
  round.from = {(rank + gap) % workers};
  round.phase = phase;
  round.step = gap;
  return round;
}

void plan_gather(int rank, int workers, int phase, std::vector<Round>& rounds) {
  for (int gap = 1; gap < workers; gap *= 2) {
    rounds.push_back(gather_round(rank, workers, phase, gap));
  }
}

std::vector<int> gathered_items(int first, int workers, int gap) {
  std::vector<int> items;
  for (int i = 0; i < std::min(gap, workers - gap); ++i) items.push_back((first + i) % workers);
  return items;
}

void plan_direct(int rank, int workers, int phase, int bunch, std::vector<Round>& rounds) {
  // As published, the first bunch counts what stays at home.
  for (int first = 0; first < workers; first += bunch) {
    Round round;
    round.phase = phase;
    for (int i = std::max(first, 1); i < std::min(first + bunch, workers); ++i) {
      round.to.push_back((rank + i) % workers);
      round.from.push_back((rank + workers - i) % workers);
    }
    if (round.to.empty()) continue;
    round.goes_ahead = first + bunch < workers;
    rounds.push_back(std::move(round));
  }
}

PlannedScheme::PlannedScheme(const SchemeShape& shape, int rank)
    : shape_(shape), rank_(rank), residual_(shape.elements) {}

void PlannedScheme::prepare(std::span<const float>) { std::ranges::fill(residual_, 0.0F); }

void PlannedScheme::begin(std::span<const float> gradient) {
  gradient_ = gradient;
  at_ = 0;
  is_ahead_ = false;
  ++call_;
  rounds_.clear();
  dropped_.clear();
  sent_ = {};
  reselect_us_ = 0;
  start();
  compose_all();
}

bool PlannedScheme::go_ahead() {
  is_ahead_ = round().goes_ahead;
  if (!is_ahead_) return false;
  ++at_;
  compose_all();
  return true;
}

Status PlannedScheme::take(std::span<const Message> messages) {
  const bool is_composed = std::exchange(is_ahead_, false);
  if (is_composed) --at_;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (Status s = absorb(i, messages[i]); !s) {
      return remote_error("from rank " + std::to_string(round().from[i]) + " in round " +
                          std::to_string(at_) + ": " + s.message());
    }
  }
  settle();
  ++at_;
  if (!is_composed) compose_all();
  return Status::ok();
}

void PlannedScheme::load() {
  selector_.accumulate(gradient_.data(), sparse::Element::kFloat32, residual_.data(),
                       gradient_.size(), residual_.data());
}

void PlannedScheme::load_and_select(std::uint32_t least) {
  if (selector_.accumulate_and_collect(gradient_.data(), sparse::Element::kFloat32,
                                       residual_.data(), gradient_.size(), residual_.data(), least,
                                       2 * k(), selected_)) {
    return;
  }
  selector_.at_least(residual_.data(), sparse::Element::kFloat32, residual_.size(), least,
                     selected_);
}

// What was selected here and is not in the result would go back, too.
void PlannedScheme::keep_residual() { clear_in_dense(selected_, 0, residual_); }

void PlannedScheme::compose_all() {
  messages_.clear();
  if (is_done()) return keep_residual();
  const std::size_t count = round().to.size();
  if (writers_.size() < count) {
    writers_.resize(count);
    numbers_.resize(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    compose(i);
    ++sent_.messages;
    sent_.bytes += messages_[i].size();
  }
}

sparse::MessageKind PlannedScheme::kind() const {
  // Workers may number their rounds differently; what a round is for is the same at both ends.
  return {sparse::Element::kFloat32,
          static_cast<std::uint16_t>(rounds_[at_].phase << 12 | rounds_[at_].step), call_};
}

void PlannedScheme::send_blocks(
    const std::vector<std::pair<std::uint32_t, const Block*>>& labelled) {
  sparse::MessageWriter& writer = writers_[messages_.size()];
  writer.begin(kind(), labelled.size());
  for (const auto& [label, block] : labelled) {
    writer.add({label, block->elements}, block->entries);
    sent_.entries += block->entries.count();
  }
  messages_.push_back(writer.bytes());
}

Status PlannedScheme::read_blocks(
    Message bytes, const std::vector<std::pair<std::uint32_t, Block*>>& labelled) const {
  shapes_.clear();
  for (const auto& [label, block] : labelled) shapes_.push_back({label, block->elements});
  if (read_.size() < labelled.size()) read_.resize(labelled.size());
  Status status =
      sparse::read_message(bytes, kind(), shapes_, std::span(read_).first(labelled.size()));
  if (!status) return status;
  for (std::size_t i = 0; i < labelled.size(); ++i) {
    std::swap(labelled[i].second->entries, read_[i]);
  }
  return status;
}

void PlannedScheme::send_numbers(const std::vector<std::uint32_t>& numbers) {
  std::vector<std::uint8_t>& bytes = numbers_[messages_.size()];
  bytes.resize(numbers.size() * sizeof numbers[0]);
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  messages_.emplace_back(bytes);
}

Status PlannedScheme::read_numbers(Message bytes, std::span<std::uint32_t> numbers) const {
  if (bytes.size() != numbers.size_bytes()) {
    return remote_error("a message of numbers has " + std::to_string(bytes.size()) +
                        " bytes, expected " + std::to_string(numbers.size_bytes()));
  }
  if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return Status::ok();
}

void PlannedScheme::send_gathered(std::vector<Block>& items) {
  std::vector<std::pair<std::uint32_t, const Block*>> labelled;
  for (const int item : gathered_items(rank_, workers(), round().step)) {
    labelled.emplace_back(item, &items[static_cast<std::size_t>(item)]);
  }
  send_blocks(labelled);
}

Status PlannedScheme::read_gathered(Message bytes, std::vector<Block>& items) const {
  std::vector<std::pair<std::uint32_t, Block*>> labelled;
  for (const int item : gathered_items(rank_ + round().step, workers(), round().step)) {
    labelled.emplace_back(item, &items[static_cast<std::size_t>(item)]);
  }
  return read_blocks(bytes, labelled);
}

void PlannedScheme::write_result(std::span<float> out) const {
  std::ranges::fill(out, 0.0F);
  for (const Block& block : result()) add_to_dense(block.entries, block.begin, out);
}

std::uint64_t PlannedScheme::result_entries() const {
  std::uint64_t count = 0;
  for (const Block& block : result()) count += block.entries.count();
  return count;
}

void PlannedScheme::write_undelivered(std::span<float> out) const {
  std::ranges::copy(residual_, out.begin());
  for (const Block& block : dropped_) add_to_dense(block.entries, block.begin, out);
}

}  // namespace riffle::bench
