// What the processes of one job share: what was done to them, and what they saw. Plain data in
// memory that all of them have mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace riffle::bench::soak {

inline constexpr int kMostNodes = 16;  // each adds its own power of two: a sum tells who is in it
inline constexpr int kMostCommunicators = 4;

inline std::uint32_t bit_of(int node) { return std::uint32_t{1} << node; }

struct Board {
  std::atomic<int> connected{0};  // nodes
  std::atomic<bool> is_over{false};
  // Nodes whose sums may end with an error, and those that sums may lack, from the time of a fault
  // that is a loss on. With RIFFLE_ON_LOSS=error: all of them, and none.
  std::atomic<std::uint32_t> may_end{0}, may_be_left_out{0};
  std::atomic<std::int64_t> lost_since_ms{0};  // 0: no such fault yet
  std::atomic<std::uint64_t> sums{0};

  enum class Stage { kConnects, kSums, kCloses, kEnded };
  struct Communicator {
    std::atomic<std::uint64_t> sum{0};      // the number of the newest that it began
    std::atomic<int> since_loss{0};         // that it began since then
    std::atomic<std::uint32_t> members{0};  // nodes in the newest that it has
    std::atomic<bool> is_running{true};
    std::atomic<std::int64_t> ended_ms{0};  // by an error; 0: it did not
  };
  struct Node {
    std::atomic<Stage> stage{Stage::kConnects};
    Communicator communicators[kMostCommunicators];
    std::atomic<bool> has_finding{false};
    char finding[256] = {};
  };
  Node nodes[kMostNodes];

  // Number and digest of a sum that some node has, by communicator; at most one call is under way
  // on each.
  static constexpr std::size_t kKept = 16;
  std::atomic<std::uint64_t> digests[kMostCommunicators][kKept] = {};
};

// The first that a node has is kept.
void find(Board& board, int node, const std::string& what);

}  // namespace riffle::bench::soak
