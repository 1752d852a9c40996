#include "sparse/select.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sparse/kernels.h"
#include "topology/base/check.h"

namespace riffle::sparse {
namespace {

constexpr std::size_t kPiece = 4096;  // elements that one histogram step looks at
constexpr std::size_t kAllTies = std::numeric_limits<std::size_t>::max();

const Kernels& kernels_for(Isa isa) {
  RIFFLE_CHECK(is_available(isa), "no such instruction set here");
  switch (isa) {
    case Isa::kAvx2:
      return *avx2_kernels();
    case Isa::kAvx512:
      return *avx512_kernels();
    case Isa::kPortable:
    case Isa::kNeon:  // has no kernel of its own: not available
      break;
  }
  return *portable_kernels();
}

const char* at(const void* data, Element element, std::size_t index) {
  return static_cast<const char*>(data) + index * size_of(element);
}

// More than this from one pass, and the sample was no guide.
std::size_t most_candidates(std::size_t count, std::size_t k) {
  return std::min(count, 4 * k + kPiece);
}

// The highest bin such that it and those above hold at least `wanted`; bin 0 if all hold less.
// `above` becomes what lies above that bin.
std::size_t bin_of(const std::vector<std::uint32_t>& histogram, std::size_t wanted,
                   std::size_t& above) {
  above = 0;
  for (std::size_t bin = histogram.size(); bin-- > 1;) {
    if (above + histogram[bin] >= wanted) return bin;
    above += histogram[bin];
  }
  return 0;
}

}  // namespace

std::size_t least_accepted(std::size_t k) { return k - k / 4; }
std::size_t most_accepted(std::size_t k) { return k + k / 4; }

Selector::Selector(Isa isa) : kernels_(kernels_for(isa)) {}

void Selector::accumulate(const void* gradient, Element element, const float* residual,
                          std::size_t count, float* out) const {
  kernels_.accumulate[static_cast<int>(element)](gradient, residual, count, out);
}

bool Selector::accumulate_and_collect(const void* gradient, Element element, const float* residual,
                                      std::size_t count, float* out, std::uint32_t least,
                                      std::size_t most, Entries& found) const {
  least = std::max(least, kLeastMagnitude);
  found.make_room(most);
  const std::size_t number = kernels_.accumulate_and_collect[static_cast<int>(element)](
      gradient, residual, count, out, least, found.raw_indices(), found.raw_values(), most);
  found.set_count(number <= most ? number : 0);
  return number <= most;
}

// Lines of 16 elements, spread evenly but for a pseudo-random shift, so that no period of the data
// falls in step with them. The rank asked for lies three standard deviations above the expected.
std::uint32_t Selector::sampled_magnitude(const void* data, Element element, std::size_t count,
                                          std::size_t k) {
  constexpr std::size_t kLine = 16;
  constexpr unsigned kBits = 12;  // exponent and four bits of mantissa: steps of 6 %
  if (count <= kPiece) return kLeastMagnitude;
  const std::size_t lines = std::clamp<std::size_t>(count / 16 / kLine, 32, 1024);
  const std::size_t stride = count / lines;
  histogram_.assign(std::size_t{1} << kBits, 0);
  for (std::size_t line = 0; line < lines; ++line) {
    const std::size_t shift = (line * 0x9e3779b1U >> 8) % (stride - kLine + 1);
    const std::size_t begin = line * stride + shift;
    constexpr float kZeros[kLine] = {};
    float values[kLine];
    accumulate(at(data, element, begin), element, kZeros, kLine, values);
    for (const float v : values) ++histogram_[magnitude_of(v) >> (31 - kBits)];
  }
  const double expected =
      static_cast<double>(lines * kLine) * static_cast<double>(k) / static_cast<double>(count);
  const auto rank = static_cast<std::size_t>(expected + 3 * std::sqrt(expected) + 4);
  std::size_t above = 0;
  const std::size_t bin = bin_of(histogram_, rank, above);
  // Never so high that an infinity would be missed.
  return std::clamp(static_cast<std::uint32_t>(bin << (31 - kBits)), kLeastMagnitude,
                    kNonFiniteMagnitude);
}

// The candidates are the upper tail, so bins of equal width from the least of them on hold few
// each.
Selector::Cut Selector::cut_of(const Entries& candidates, std::size_t k) {
  constexpr unsigned kBits = 11;
  if (k == 0) return {kNonFiniteMagnitude, kAllTies};
  const std::span<const float> values = candidates.values();
  std::uint32_t low = kMagnitudeMask, high = 0;
  for (const float v : values) {
    const std::uint32_t m = magnitude_of(v);
    low = std::min(low, m);
    high = std::max(high, m);
  }
  const auto width = static_cast<unsigned>(std::bit_width(high - low));
  const unsigned shift = width > kBits ? width - kBits : 0;
  histogram_.assign(std::size_t{1} << kBits, 0);
  for (const float v : values) ++histogram_[(magnitude_of(v) - low) >> shift];
  std::size_t above = 0;
  const std::size_t bin = bin_of(histogram_, k, above);
  bin_.clear();
  for (const float v : values) {
    const std::uint32_t m = magnitude_of(v);
    if ((m - low) >> shift == bin) bin_.push_back(m);
  }
  const auto nth = bin_.begin() + static_cast<std::ptrdiff_t>(k - above - 1);
  std::nth_element(bin_.begin(), nth, bin_.end(), std::greater<>());
  const std::uint32_t magnitude = *nth;
  if (magnitude >= kNonFiniteMagnitude) return {kNonFiniteMagnitude, kAllTies};
  const auto larger = std::count_if(bin_.begin(), nth, [&](auto m) { return m > magnitude; });
  return {magnitude, k - above - static_cast<std::size_t>(larger)};
}

// Exact for any input: the k-th magnitude digit by digit, 11, 10 and 10 bits.
Selector::Cut Selector::cut_by_histograms(const void* data, Element element, std::size_t count,
                                          std::size_t k) {
  Entries piece;
  piece.make_room(kPiece);
  std::uint32_t prefix = 0;
  std::size_t wanted = k;
  unsigned low_bit = 31;
  for (const unsigned bits : {11U, 10U, 10U}) {
    const unsigned shift = low_bit - bits;
    histogram_.assign(std::size_t{1} << bits, 0);
    for (std::size_t begin = 0; begin < count; begin += kPiece) {
      const std::size_t size = std::min(kPiece, count - begin);
      const std::uint32_t least = std::max(prefix, kLeastMagnitude);
      piece.set_count(kernels_.collect[static_cast<int>(element)](
          at(data, element, begin), size, least, piece.raw_indices(), piece.raw_values(), size));
      for (const float v : piece.values()) {
        const std::uint32_t m = magnitude_of(v);
        if (std::uint64_t{m} >> low_bit == std::uint64_t{prefix} >> low_bit) {
          ++histogram_[(m >> shift) & ((1U << bits) - 1)];
        }
      }
    }
    std::size_t above = 0;
    prefix |= static_cast<std::uint32_t>(bin_of(histogram_, wanted, above) << shift);
    wanted -= above;
    low_bit = shift;
  }
  if (prefix >= kNonFiniteMagnitude) return {kNonFiniteMagnitude, kAllTies};
  if (prefix < kLeastMagnitude) return {kLeastMagnitude, kAllTies};  // fewer than k are not zero
  return {prefix, wanted};
}

void Selector::apply(Cut cut, Entries& candidates) {
  std::uint32_t* indices = candidates.raw_indices();
  float* values = candidates.raw_values();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < candidates.count(); ++i) {
    const std::uint32_t m = magnitude_of(values[i]);
    bool keep = m > cut.magnitude;
    if (m == cut.magnitude && cut.ties > 0) [[unlikely]] {
      keep = true;
      --cut.ties;
    }
    indices[kept] = indices[i];
    values[kept] = values[i];
    kept += keep ? 1 : 0;
  }
  candidates.set_count(kept);
}

void Selector::top_k(const void* data, Element element, std::size_t count, std::size_t k,
                     Entries& out) {
  RIFFLE_CHECK(count <= std::numeric_limits<std::uint32_t>::max(), "indices have 32 bits");
  k = std::min(k, count);
  const auto collect = kernels_.collect[static_cast<int>(element)];
  const std::uint32_t least = sampled_magnitude(data, element, count, k);
  const std::size_t capacity = most_candidates(count, k);
  out.make_room(capacity);
  const std::size_t found =
      collect(data, count, least, out.raw_indices(), out.raw_values(), capacity);
  if (found <= capacity && (found >= k || least == kLeastMagnitude)) {
    out.set_count(found);
    if (found > k) apply(cut_of(out, k), out);
    return;
  }
  Cut cut = cut_by_histograms(data, element, count, k);
  out.clear();
  Entries piece;
  piece.make_room(kPiece);
  for (std::size_t begin = 0; begin < count; begin += kPiece) {
    const std::size_t size = std::min(kPiece, count - begin);
    piece.set_count(collect(at(data, element, begin), size, cut.magnitude, piece.raw_indices(),
                            piece.raw_values(), size));
    for (std::size_t i = 0; i < piece.count(); ++i) {
      const float v = piece.values()[i];
      if (magnitude_of(v) == cut.magnitude && cut.ties-- == 0) {
        cut.ties = 0;
        continue;
      }
      out.append(static_cast<std::uint32_t>(begin) + piece.indices()[i], v);
    }
  }
}

void Selector::at_least(const void* data, Element element, std::size_t count, std::uint32_t least,
                        Entries& out) const {
  least = std::max(least, kLeastMagnitude);
  for (std::size_t capacity = std::max<std::size_t>(out.count(), kPiece);;
       capacity = std::min(count, 4 * capacity)) {
    out.make_room(capacity);
    const std::size_t found = kernels_.collect[static_cast<int>(element)](
        data, count, least, out.raw_indices(), out.raw_values(), capacity);
    if (found > capacity) continue;
    return out.set_count(found);
  }
}

void Selector::take_exactly(const void* data, Element element, std::size_t count, std::size_t k,
                            Threshold& threshold, Entries& out) {
  top_k(data, element, count, k, out);
  std::uint32_t least = kNonFiniteMagnitude;
  for (const float v : out.values()) least = std::min(least, magnitude_of(v));
  threshold.magnitude = out.count() < k ? kLeastMagnitude : least;
  ++threshold.exact_calls;
}

bool Selector::near_top_k_of(std::size_t k, Threshold& threshold, Entries& candidates) {
  const std::size_t found = candidates.count();
  const bool all_there_is = threshold.magnitude == kLeastMagnitude;
  if (k == 0 || (found < least_accepted(k) && !all_there_is)) return false;
  ++threshold.reused_calls;
  if (found > most_accepted(k)) {  // all that could be wanted is at hand
    const Cut cut = cut_of(candidates, k);
    apply(cut, candidates);
    threshold.magnitude = cut.magnitude;
    return true;
  }
  // Counts of gradients fall with the 2nd to 8th power of the threshold, so a tenth of the relative
  // error always moves the right way and never past the aim.
  const double error =
      (static_cast<double>(found) - static_cast<double>(k)) / static_cast<double>(k);
  const double nudged =
      from_magnitude(std::min(threshold.magnitude, kNonFiniteMagnitude - 1)) * (1 + 0.1 * error);
  threshold.magnitude =
      std::clamp(magnitude_of(static_cast<float>(nudged)), kLeastMagnitude, kNonFiniteMagnitude);
  return true;
}

void Selector::near_top_k(const void* data, Element element, std::size_t count, std::size_t k,
                          Threshold& threshold, Entries& out) {
  k = std::min(k, count);
  if (threshold.magnitude != 0) {
    const std::size_t capacity = most_candidates(count, k);
    out.make_room(capacity);
    const std::size_t found = kernels_.collect[static_cast<int>(element)](
        data, count, threshold.magnitude, out.raw_indices(), out.raw_values(), capacity);
    if (found <= capacity) {
      out.set_count(found);
      if (near_top_k_of(k, threshold, out)) return;
    }
  }
  take_exactly(data, element, count, k, threshold, out);
}

void Selector::keep_top_k(Entries& entries, std::size_t k, Entries& dropped) {
  dropped.clear();
  if (entries.count() <= k) return;
  Cut cut = cut_of(entries, k);
  for (std::size_t i = 0, ties = cut.ties; i < entries.count(); ++i) {
    const float v = entries.values()[i];
    const std::uint32_t m = magnitude_of(v);
    if (m > cut.magnitude) continue;
    if (m == cut.magnitude && ties > 0) {
      --ties;
      continue;
    }
    dropped.append(entries.indices()[i], v);
  }
  apply(cut, entries);
}

}  // namespace riffle::sparse
