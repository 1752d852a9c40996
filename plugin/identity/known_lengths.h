// In which communicators all nodes know the true length of calls (collective/engine/lengths.h), so
// that small all-reduces are faster in group plans than in NCCL's ring or tree: what COLLNET's
// connect finds out, and the tuner must know.
//
// All ranks have to choose alike. Connect is over on all of them between the same two collectives
// of the communicator, for NCCL waits for it; but only ranks that take part in it learn its
// outcome. So the tuner may go by it only where every rank is a node of its own.
//
// Told apart by NCCL's communicator id, which tuners know from v5 and COLLNET from v11 on (NCCL
// 2.28). Thread safe; reading is one atomic load.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace riffle::known_lengths {

// How many nodes there are that all know; 0: not known of all, or not connected yet.
using Nodes = std::atomic<int>;

// The one of this communicator, shared by all that ask for it while it has a holder; null for id 0,
// which is no id.
std::shared_ptr<Nodes> of(std::uint64_t comm_id);

}  // namespace riffle::known_lengths
