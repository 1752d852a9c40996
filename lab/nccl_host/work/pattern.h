// Test data whose sums are known without communication: element i of rank r is a small
// integer, exact in every type that NCCL knows, and so are sums, maxima and minima over up to 16
// ranks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lab/nccl_host/work/reduction.h"
#include "topology/base/status.h"

namespace riffle::host {

// Fills `count` elements as rank's contribution number `salt`.
void fill_pattern(void* data, std::size_t count, DataType type, int rank, unsigned salt);
// The elements that differ from the reduction over ranks 0 .. ranks-1 of the elements from `offset`
// on; 0 = right.
std::size_t count_wrong(const void* data, std::size_t count, DataType type, Op op, int ranks,
                        unsigned salt, std::size_t offset = 0);
// The same against one rank's own contribution (copies).
std::size_t count_wrong_copy(const void* data, std::size_t count, DataType type, int rank,
                             unsigned salt, std::size_t offset = 0);

}  // namespace riffle::host
