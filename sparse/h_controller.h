// How many entries each team offers to the gathered exchange across teams (B-SAG), so that the
// union of all offers comes out near the block's budget: SparDL's controller. Partners see the same
// union, so their controllers stay equal. One per worker and chunk; no threads.
#pragma once

#include <cstdint>

namespace riffle::sparse {

class HController {
 public:
  HController() = default;
  HController(std::uint64_t budget, int teams);  // teams >= 1

  std::uint64_t entries() const { return static_cast<std::uint64_t>(h_); }
  // After a call in which the offers had `union_size` different indices.
  void observe(std::uint64_t union_size);

 private:
  std::int64_t budget_ = 0;
  std::int64_t least_ = 0;  // budget / teams, at least 1
  std::int64_t h_ = 0;
  std::int64_t step_ = 1;  // never 0
  bool inertia_ = false;
};

}  // namespace riffle::sparse
