// Engine: runs operations over a mesh, chunk by chunk, as the installed plan says.
//
// One all-reduce: the operation is cut into chunks of chunk_bytes; chunk s takes lane s mod lanes.
// A chunk walks down the levels (partial sums, under credits, see flow.h) and back up (final sums,
// received in place). Up to max_chunks run at once; every frame carries its chunk's number as
// priority, so that links serve the oldest chunk first. Work is done in pieces that fit the cache.
//
// Exactness: contributions are reduced in the order of the plan, by one node per element and level,
// and everybody receives that node's result, so all nodes end with the same bits, from run to run.
//
// Threads: one, the owner of the mesh. Allocates in install() only. Errors: a frame that does not
// fit the plan is refused with a Status naming it (the peer then counts as lost); fail() ends
// everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/collective/chunk.h"
#include "plugin/collective/flow.h"
#include "plugin/collective/operation.h"
#include "plugin/collective/pattern.h"
#include "plugin/collective/slot_memory.h"
#include "plugin/telemetry/comm_counters.h"
#include "plugin/transport/mesh.h"

namespace riffle {

// Cookie of frames whose completion nobody waits for.
inline constexpr std::uint64_t kNoCookie = ~0ull;

struct EngineOptions {
  std::size_t chunk_bytes = 1 << 20;
  std::size_t piece_bytes = 128 << 10;
  std::size_t window_bytes = 512 << 10;  // partial sums in flight per peer and level, at least
  int max_chunks = 64;
  int max_operations = 64;
  // What operations and groups are counted into, where somebody records; must outlive the engine.
  CommCounters* counters = nullptr;
};

class Engine final : private ExecutorContext {
 public:
  // `violation` hears of a peer whose frame turned out not to fit only after it had been accepted.
  using Violation = std::function<void(int peer, const Status& why)>;
  Engine(Mesh* mesh, const EngineOptions& options, Violation violation);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes the plan that all nodes agreed on. Once, before the first operation.
  Status install(const PlanSet& plans);

  // Queues an operation; its state leaves kRunning when it is over. At most max_operations at once.
  void submit(Operation* operation);

  // The mesh's data and credit frames, as in MeshSink.
  Result<std::byte*> place(int peer, const FrameHeader& header);
  void arrived(int peer, const FrameHeader& header, std::byte* payload);
  void sent(std::uint64_t cookie);

  // Ends every operation as failed. Payloads that still arrive go nowhere.
  void fail();
  bool has_failed() const { return failed_; }
  bool is_idle() const { return running_ == 0 && queued_ == 0; }

 private:
  struct Early {  // a partial sum that arrived before its chunk began here
    int peer;
    FrameHeader header;
    std::byte* slot;
  };
  struct Target {  // what a frame's header means in a running chunk
    int group;
    int member;
    Range range;
  };
  // ExecutorContext
  void send_partial(Chunk& chunk, int group, int member, Range range,
                    const std::byte* data) override;
  void send_final(Chunk& chunk, int group, int member, Range range) override;
  void release(Chunk& chunk, int group, int member, const void* slot) override;
  void reduced(Chunk& chunk, int group, Range range) override;
  void completed(Chunk& chunk, int group, Range range) override;

  const Program& program_of(Collective collective, std::uint64_t seq) const;
  std::size_t flow_index(int peer, int level) const;
  Status make_flows();
  void make_chunks();

  void start_chunks();
  void start(Chunk& chunk, Operation* operation);
  void cut(Chunk& chunk);
  void announce(Chunk& chunk);
  void feed_early(Chunk& chunk);
  void own_elements_final(Chunk& chunk, int group, int fragment, std::uint64_t elements);
  void finish_if_done(Chunk& chunk);
  void count(const Operation& operation) const;
  void pump(int peer, int level);

  FrameHeader header_of(const Chunk& chunk, int level, int index, bool is_final, Range range) const;
  Result<Target> resolve(int peer, const FrameHeader& header, const Chunk& chunk) const;
  Result<std::byte*> take_slot(int peer, const FrameHeader& header);
  void take_credits(int peer, const FrameHeader& header);

  Mesh* mesh_;
  EngineOptions options_;
  Violation violation_;
  std::vector<Program> lanes_;
  Program blocks_;  // reduce-scatter and all-gather: one direct group of all nodes, cut by the call
  int classes_ = 0;                         // levels plus one for blocks_
  std::vector<std::optional<Flow>> flows_;  // [peer * classes_ + class]
  std::vector<std::optional<SlotPool>> pools_;
  std::unique_ptr<SlotMemory> slot_memory_;
  std::vector<Chunk> chunks_;              // chunk s is chunks_[s % max_chunks]
  std::vector<std::vector<Early>> early_;  // likewise
  std::vector<int> frames_to_;             // scratch: partial frames per member
  std::vector<Operation*> operations_;     // ring buffer, oldest at first_operation_
  std::size_t first_operation_ = 0, queued_ = 0;
  std::uint64_t next_seq_ = 0;
  int running_ = 0;
  bool starting_ = false;
  int contributor_ = -1;  // whose frame, or own chunk, is being worked on
  bool failed_ = false;
  std::vector<std::byte> discard_;
};

}  // namespace riffle
