// What the processes of one job share: what was done to them, and what they saw. Plain data in
// memory that all of them have mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace riffle::bench::soak {

inline constexpr int kMostNodes = 16;  // each adds its own power of two: a sum tells who is in it
inline constexpr int kMostCommunicators = 4;

inline std::uint32_t bit_of(int node) { return std::uint32_t{1} << node; }

struct Board {
  std::atomic<int> connected{0};  // nodes
  std::atomic<bool> is_over{false};
  // Nodes that a fault may end or leave out, from the time of that fault on. With
  // RIFFLE_ON_LOSS=error it is all of them.
  std::atomic<std::uint32_t> may_be_lost{0};
  std::atomic<std::int64_t> lost_since_ms{0};  // 0: no such fault yet
  std::atomic<std::uint64_t> sums{0};

  struct Node {
    std::atomic<std::int64_t> ended_ms{0};  // by an error; 0: it did not
    std::atomic<bool> has_finding{false};
    char finding[256] = {};
  };
  Node nodes[kMostNodes];

  // Number and digest of a sum that some node has, by communicator; at most one call is under way
  // on each.
  static constexpr std::size_t kKept = 16;
  std::atomic<std::uint64_t> digests[kMostCommunicators][kKept] = {};
};

}  // namespace riffle::bench::soak
