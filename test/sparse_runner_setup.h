// What tests of the sparse runner alone begin with: calls that are all alike, and open links.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lab/memory/memory_network.h"
#include "plugin/collective/sparse/sparse_run.h"
#include "plugin/kernels/types.h"

namespace riffle::testing {

inline constexpr double kSparseDensity = 0.05;

// One node's run, whose step is so many calls of so many elements, each one segment.
inline std::unique_ptr<SparseRun> sparse_run_of(int rank, int nodes, std::size_t calls,
                                                std::uint64_t elements) {
  Layout::Piece piece;
  piece.valid = piece.total = piece.count = elements;
  piece.type = static_cast<int>(DataType::kFloat32);
  SyncSettings settings;
  settings.state_limit_bytes = 1 << 30;
  settings.sparse.density = kSparseDensity;
  SparseOrder order;
  for (int i = 0; i < nodes; ++i) order.node_at.push_back(static_cast<std::uint64_t>(i));
  order.is_sparse.assign(calls, 1);
  return std::move(*SparseRun::make(order, std::vector<Layout::Piece>(calls, piece), settings, rank,
                                    nodes, elements));
}

// Opens all links, and delivers what is under way.
inline void open_links(MemoryNetwork& network, int nodes) {
  for (int r = 0; r < nodes; ++r) {
    for (int peer = 0; peer < nodes; ++peer) {
      if (peer != r) network.mesh(r).open(peer);
    }
  }
  while (network.step()) {
  }
}

}  // namespace riffle::testing
