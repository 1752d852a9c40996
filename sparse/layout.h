// How one chunk of a gradient is shared out: workers in teams, elements in blocks, entries in
// budgets (SparDL, Zhao et al., arXiv 2304.00737, section 3).
//
// P workers form d teams of T = P/d; position p stands in team p / T with local rank p mod T. The n
// elements are cut into T blocks whose sizes differ by one at most; in every team the worker of
// local rank b ends up with block b. Block b may keep `budget(b)` entries: density * size, rounded
// to nearest, but never none of a block that has elements. Indices within a block count from 0.
#pragma once

#include <cstdint>

#include "topology/base/status.h"

namespace riffle::sparse {

inline constexpr std::uint64_t kMaxElements = (std::uint64_t{1} << 31) - 1;  // of a chunk
inline constexpr int kMaxWorkers = 1 << 16;
// Blocks up to this size have 2-byte indices.
inline constexpr std::uint64_t kShortIndexElements = 1 << 16;

struct Shape {
  int workers = 1;
  int teams = 1;               // divides workers
  std::uint64_t elements = 0;  // at most kMaxElements
  double density = 0.01;       // in (0, 1]
};

// Names the field, the value and the accepted range.
Status validate(const Shape& shape);

class Layout {
 public:
  explicit Layout(const Shape& shape);  // a shape that validate() accepts

  const Shape& shape() const { return shape_; }
  int workers() const { return shape_.workers; }
  int teams() const { return shape_.teams; }
  int team_size() const { return shape_.workers / shape_.teams; }  // also the number of blocks
  int team_of(int position) const { return position / team_size(); }
  int local_rank_of(int position) const { return position % team_size(); }

  std::uint64_t begin_of(int block) const;
  std::uint64_t size_of(int block) const { return begin_of(block + 1) - begin_of(block); }
  std::uint64_t budget_of(int block) const;
  std::uint64_t budget() const;  // of all blocks together: k

 private:
  Shape shape_;
};

}  // namespace riffle::sparse
