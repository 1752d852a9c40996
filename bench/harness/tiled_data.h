// Data whose exact reduction every process knows without talking to another: one tile of small
// integers, repeated. The tile's length is a prime, so that a shard in the wrong place shows.
#pragma once

#include <cstddef>
#include <vector>

#include "lab/nccl_host/work/reduction.h"

namespace riffle::bench {

class TiledData {
 public:
  TiledData(DataType type, host::Op op, int rank, int ranks, unsigned salt);

  void fill(void* data, std::size_t count) const;                // this rank's contribution
  std::size_t wrong(const void* data, std::size_t count) const;  // elements that are not the result
  // The same where one rank may have been lost: an element may also be the sum of the others, times
  // all ranks over those left. float32 sums only; the lost rank must be the same everywhere.
  std::size_t wrong_after_loss(const void* data, std::size_t count) const;

 private:
  DataType type_;
  host::Op op_;
  int rank_, ranks_;
  unsigned salt_;
  std::vector<std::byte> mine_, result_;
};

}  // namespace riffle::bench
