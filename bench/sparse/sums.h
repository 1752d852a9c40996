// Sparse vectors added up and cut, with scratch memory kept between calls.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sparse/entries.h"
#include "sparse/select.h"

namespace riffle::bench {

// Processor time of this thread.
double thread_us();

// The sum of many, pairs first, then pairs of pairs: the same bits wherever the order is the same.
class Sums {
 public:
  // The result stays valid until the next call.
  const sparse::Entries& sum(std::span<const sparse::Entries> all);
  // to += from
  void add_to(sparse::Entries& to, const sparse::Entries& from);

 private:
  std::vector<sparse::Entries> level_;
  sparse::Entries scratch_;
};

// Those of `from` whose index lies in [begin, end), counted from `begin`.
void copy_slice(const sparse::Entries& from, std::uint64_t begin, std::uint64_t end,
                sparse::Entries& to);
// Appends `from`, all of whose indices come after those of `to`, moved by `base`.
void append_moved(const sparse::Entries& from, std::uint64_t base, sparse::Entries& to);
// Keeps what reaches `magnitude` (sparse/element.h); the rest goes to the end of `dropped`.
void cut_below(sparse::Entries& entries, std::uint32_t magnitude, sparse::Entries& dropped);
std::uint32_t least_magnitude(const sparse::Entries& entries);  // 0 if there are none

void add_to_dense(const sparse::Entries& entries, std::uint64_t base, std::span<float> out);
void clear_in_dense(const sparse::Entries& entries, std::uint64_t base, std::span<float> out);

}  // namespace riffle::bench
