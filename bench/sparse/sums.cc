#include "bench/sparse/sums.h"

#include <time.h>

#include <algorithm>

namespace riffle::bench {

using sparse::Entries;

double thread_us() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

const Entries& Sums::sum(std::span<const Entries> all) {
  scratch_.clear();
  if (all.empty()) return scratch_;
  if (level_.size() < all.size()) level_.resize(all.size());
  if (all.size() == 1) {
    level_[0].clear();
    append_moved(all[0], 0, level_[0]);
    return level_[0];
  }
  std::size_t count = all.size() / 2;
  for (std::size_t i = 0; i < count; ++i) add(all[2 * i], all[2 * i + 1], level_[i]);
  if (all.size() % 2 != 0) {
    level_[count].clear();
    append_moved(all.back(), 0, level_[count++]);
  }
  while (count > 1) {
    for (std::size_t i = 0; i < count / 2; ++i) {
      add(level_[2 * i], level_[2 * i + 1], scratch_);
      std::swap(level_[i], scratch_);
    }
    if (count % 2 != 0) std::swap(level_[count / 2], level_[count - 1]);
    count = (count + 1) / 2;
  }
  return level_[0];
}

void Sums::add_to(Entries& to, const Entries& from) {
  add(to, from, scratch_);
  std::swap(to, scratch_);
}

void copy_slice(const Entries& from, std::uint64_t begin, std::uint64_t end, Entries& to) {
  to.clear();
  const auto indices = from.indices();
  const auto first = std::ranges::lower_bound(indices, begin) - indices.begin();
  const auto last = std::ranges::lower_bound(indices, end) - indices.begin();
  to.make_room(static_cast<std::size_t>(last - first));
  for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
    to.append(indices[i] - static_cast<std::uint32_t>(begin), from.values()[i]);
  }
}

void append_moved(const Entries& from, std::uint64_t base, Entries& to) {
  for (std::size_t i = 0; i < from.count(); ++i) {
    to.append(from.indices()[i] + static_cast<std::uint32_t>(base), from.values()[i]);
  }
}

void cut_below(Entries& entries, std::uint32_t magnitude, Entries& dropped) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.count(); ++i) {
    const std::uint32_t index = entries.indices()[i];
    const float value = entries.values()[i];
    if (sparse::magnitude_of(value) < magnitude) {
      dropped.append(index, value);
    } else {
      entries.raw_indices()[kept] = index;
      entries.raw_values()[kept++] = value;
    }
  }
  entries.set_count(kept);
}

std::uint32_t least_magnitude(const Entries& entries) {
  std::uint32_t least = 0;
  for (const float v : entries.values()) {
    const std::uint32_t m = sparse::magnitude_of(v);
    if (least == 0 || m < least) least = m;
  }
  return least;
}

void add_to_dense(const Entries& entries, std::uint64_t base, std::span<float> out) {
  for (std::size_t i = 0; i < entries.count(); ++i) {
    out[base + entries.indices()[i]] += entries.values()[i];
  }
}

void clear_in_dense(const Entries& entries, std::uint64_t base, std::span<float> out) {
  constexpr std::size_t kAhead = 24;
  const auto indices = entries.indices();
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (i + kAhead < indices.size()) __builtin_prefetch(&out[base + indices[i + kAhead]], 1);
    out[base + indices[i]] = 0;
  }
}

}  // namespace riffle::bench
