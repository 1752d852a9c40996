// Generation: everything of the engine that depends on one plan set: programs, flows, slots, and
// the chunks' state. The first one serves from chunk 0; each further one from a sequence number
// that all nodes agreed on (plan_switch.h) while the former still runs what it began. So a plan
// change stops nothing: chunks of both run side by side, each with its own slots and credits.
//
// Threads: make() on any (it may take a while at thousands of nodes); then the engine's. Allocates
// in make(), and in the first chunk that uses a flow. Slots are one mapping, touched only where
// used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/collective/base/slot_memory.h"
#include "plugin/collective/engine/chunk.h"
#include "plugin/collective/engine/flow.h"
#include "plugin/collective/engine/operation.h"
#include "plugin/collective/engine/program.h"
#include "plugin/collective/engine/trace_options.h"
#include "plugin/telemetry/comm_counters.h"
#include "topology/plan/group_plan.h"

namespace riffle {

struct EngineOptions {
  std::size_t chunk_bytes = 1 << 20;
  std::size_t piece_bytes = 128 << 10;
  std::size_t window_bytes = 512 << 10;  // partial sums in flight per peer and level, at least
  // On their way at once from the node that sends most, if the plan loads nodes as unevenly as can
  // be; the window of a node in a plan is made from it (plan_sizes.h).
  std::size_t send_bytes = 1 << 20;
  int max_chunks = 64;
  int max_operations = 64;
  // Of so many engines that run the communicator's operations together, one per progress thread,
  // this is number `thread` (collective/threads/threaded_engine.h).
  int threads = 1, thread = 0;
  // ... of larger operations than this; smaller ones the first one runs alone. The chunk window is
  // for those of at most `most_windowed_bytes`.
  std::size_t large_bytes = 64 << 10, most_windowed_bytes = PlanSet::kWindowCall;
  bool shares(const Operation& operation) const {
    return threads > 1 && operation.bytes() > large_bytes;
  }
  bool has_window(const Operation& operation) const {
    return operation.collective == Collective::kAllReduce && operation.step == Operation::kExact &&
           operation.bytes() > large_bytes && operation.bytes() <= most_windowed_bytes;
  }
  // False: no reduce-scatter and no all-gather, which need slots for exchanges with every peer.
  bool has_blocks = true;
  // Tests only, to see that they would notice: gives the slot of a partial sum back when it
  // arrives, not when it has been added.
  bool plants_early_release = false;
  // What operations and groups are counted into, where a record is kept; must outlive the engine.
  CommCounters* counters = nullptr;
  TraceOptions trace;
  // The job's numbers of the mesh's nodes, where those are not their own.
  std::vector<int> nodes;
};

class Generation {
 public:
  static constexpr std::uint64_t kNotAgreed = ~0ull;

  // `plans` must have passed validate(). Fails if the plan does not compile for this node or there
  // is no memory.
  static Result<std::unique_ptr<Generation>> make(const PlanSet& plans, std::uint64_t number,
                                                  int rank, int size, const EngineOptions& options);

  std::uint64_t number() const { return number_; }
  std::size_t chunk_bytes() const { return chunk_bytes_; }            // of all-reduces
  std::size_t send_bytes() const { return send_bytes_; }              // this node's part of them
  std::size_t busy_bytes() const { return busy_bytes_; }              // this engine's part
  std::uint64_t windowed_chunks() const { return windowed_chunks_; }  // PlanSet's, with a window
  const std::vector<int>& weights() const { return weights_; }        // by peer (peer_weights.h)
  // Frames of all its chunks that can run at once: more of them never wait for the send window.
  std::size_t most_waiting() const { return most_waiting_; }
  // Of an exact all-reduce that was posted with so many bytes.
  const Lanes& lanes_for(std::size_t bytes) const {
    return small_bytes_ > 0 && bytes <= small_bytes_ ? small_ : lanes_;
  }
  const Program& blocks() const { return blocks_; }  // of the other collectives
  // The relaxed groups: how many steps there are (perhaps none), and those of one step and lane.
  std::uint32_t relaxed_steps() const { return relaxed_plans_.steps; }
  const Program& relaxed_program(std::uint64_t step, std::uint64_t lane) const {
    return relaxed_[relaxed_plans_.index(step, lane)];
  }
  std::vector<GroupRun>& runs(int chunk_index) { return runs_[chunk_index]; }
  // Null if the plan has no such exchange, whatever number the wire brought.
  Flow* flow(int peer, int level);
  SlotPool* pool(int peer, int level);
  bool has_level(int level) const;
  void clear_flows();

  // The engine's notes.
  std::uint64_t first_seq = kNotAgreed;  // chunks from here on, up to the next generation's first
  int running = 0;                       // chunks
  std::int64_t slots_taken = 0;          // the memory may not go before they are back

 private:
  Generation() = default;
  Status add_lanes(const std::vector<GroupPlan>& plans, int rank, int size, std::size_t chunk_bytes,
                   Lanes* lanes);
  std::size_t index(int peer, int level) const;
  Status make_flows(int rank, int size, const EngineOptions& options);
  void make_runs(const EngineOptions& options);

  std::uint64_t number_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t send_bytes_ = 0, busy_bytes_ = 0;
  std::uint64_t windowed_chunks_ = 1;
  std::size_t most_waiting_ = 0;
  std::vector<int> weights_;
  // Small sums have levels of their own, behind the others': the slots and credits of large ones
  // are what they would be without them.
  Lanes lanes_, small_;
  std::size_t small_bytes_ = 0;   // small sums' limit; 0: they take the lanes of all others
  int levels_ = 0;                // of all programs, at most
  std::vector<Program> relaxed_;  // by partition
  RelaxedPlans relaxed_plans_;    // without the partitions
  Program blocks_;  // reduce-scatter and all-gather: one direct group of all nodes, cut by the call
  int classes_ = 0;  // levels plus one for blocks_
  // [peer * classes_ + class]; null where nothing is exchanged.
  std::vector<std::unique_ptr<Flow>> flows_;
  std::vector<std::unique_ptr<SlotPool>> pools_;
  std::vector<std::vector<GroupRun>> runs_;  // [chunk index][group]
  std::unique_ptr<SlotMemory> slot_memory_;
};

}  // namespace riffle
