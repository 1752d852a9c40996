// Which way an all-reduce goes: in group plans (COLLNET) or over NCCL's own ring or tree (NET).
//
// A pure function of arguments that are equal on all ranks (NCCL's cost table is; NCCL itself picks
// its minimum on every rank) and of knobs that all nodes must have alike, because all ranks have to
// decide the same and NCCL does not check. Free of NCCL's table versions. Any thread; no locks, no
// allocation.
#pragma once

#include <cstddef>

namespace riffle {

// Smaller sums move the more padding the smaller they are, unless their true length is known.
inline constexpr std::size_t kSmallCollective = 64 << 10;  // bytes

struct TunerSettings {
  bool is_enabled = true;     // false with RIFFLE_COLLNET=off
  std::size_t min_bytes = 0;  // RIFFLE_COLLNET_MIN_BYTES; 0 with RIFFLE_ON_LOSS=continue
  // The limit falls to 0 where all nodes know the length of calls (known_lengths.h). Not in relaxed
  // and sparse modes: those repeat a sequence of calls, which small sums now and then would break.
  bool falls = false;
};

enum class Way {
  kNccl,       // no opinion: leave everything to NCCL
  kGroupPlan,  // choose a CollNet algorithm
  kNet,        // avoid the CollNet algorithms
};

// `function` is NCCL's number, `nodes` the communicator's node count.
Way choose_way(const TunerSettings& settings, std::size_t nodes, int function, std::size_t bytes);

// NCCL's cost table: predicted microseconds, dense [algorithms][protocols]; negative = unavailable.
struct CostTable {
  float* costs = nullptr;
  int algorithms = 0;
  int protocols = 0;

  float& at(int algorithm, int protocol) const {
    return costs[static_cast<std::ptrdiff_t>(algorithm) * protocols + protocol];
  }
};

// Bends the table towards `way`; true if it changed.
//   kGroupPlan: of the available CollNet algorithms the one that NCCL predicts to be the fastest
//     gets cost 0 and wins. They all hand us the same bytes between the nodes and differ within a
//     node (chain, direct through an NVSwitch, NVLS), which NCCL's model knows and we do not. Equal
//     predictions go to the chain, which works on every machine.
//   kNet: the CollNet algorithms become unavailable, if a ring or tree is left to take over.
// NVLS counts as CollNet: between several nodes it is carried by COLLNET. Unavailable entries stay
// so: their connections do not exist. Tables of unknown shape are left alone.
bool steer(Way way, const CostTable& table);

}  // namespace riffle
