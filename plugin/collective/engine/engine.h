// Engine: runs operations over a mesh, chunk by chunk, as the plan says.
//
// One all-reduce: the operation is cut into chunks of chunk_bytes at most; chunk s takes lane s mod
// lanes. A chunk walks down the levels (partial sums, under credits, see flow.h) and back up (final
// sums, received in place). Up to max_chunks run at once; every frame carries its chunk's number as
// priority, so that links serve the oldest chunk first; of sums of about 1 MiB no more begins than
// keeps the network busy (chunk_window.h). Work is done in fragments that fit the cache.
//
// Exactness: contributions are reduced in the order of the plan, by one node per element and level,
// and all others receive that node's result, so all nodes end with the same bits, from run to run.
//
// Several engines, each on a thread of its own, may run the same operations
// (collective/threads/threaded_engine.h): each numbers the chunks of all and runs every so many'th,
// or none of what is small.
//
// Changing the plan: a further generation (generation.h) is prepared while the first one runs, then
// switched to at a chunk number that no node has begun. Until a node knows that number it holds
// still before the one it promised (hold_at). Frames name their generation, so that one of the new
// plan finds its slot even where the number is not known yet.
//
// Threads: one, the owner of the mesh. Allocates in install() and prepare() only. Errors: a frame
// that does not fit the plan is refused with a Status naming it (the peer then counts as lost);
// fail() ends everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "plugin/collective/base/frames.h"
#include "plugin/collective/engine/busy_account.h"
#include "plugin/collective/engine/call_trace.h"
#include "plugin/collective/engine/chunk.h"
#include "plugin/collective/engine/chunk_window.h"
#include "plugin/collective/engine/generation.h"
#include "plugin/collective/engine/group_executor.h"
#include "plugin/collective/engine/lengths.h"
#include "plugin/collective/engine/operation.h"
#include "plugin/collective/engine/send_window.h"
#include "plugin/collective/engine/wire.h"
#include "plugin/telemetry/comm_counters.h"
#include "plugin/transport/base/frame_sink.h"

namespace riffle {

class Mesh;

class Engine final : private ExecutorContext {
 public:
  // Alive at once: an ending one, the current one, the prepared one.
  static constexpr std::size_t kMaxGenerations = 3;
  // `violation` hears of a peer whose frame turned out not to fit only after it had been accepted.
  using Violation = std::function<void(int peer, const Status& why)>;
  Engine(Mesh* mesh, const EngineOptions& options, Violation violation);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes the plan that all nodes agreed on. Once, before the first operation.
  Status install(const PlanSet& plans);

  // Takes the next generation, made with these options and this number, without using it. An error
  // if one is prepared already, or if a former one has not ended yet.
  const EngineOptions& options() const { return options_; }
  std::uint64_t next_generation() const { return generations_.back()->number() + 1; }
  Status prepare(std::unique_ptr<Generation> generation);
  // No chunk from `seq` on starts until switch_at() or drop_prepared(). Precondition: seq >=
  // next_seq().
  void hold_at(std::uint64_t seq);
  // ... but those that a hold nearer than the last one kept back do.
  void go_on() { start_chunks(); }
  // Chunks from `seq` on run in the prepared generation. Precondition: seq >= earliest_switch(),
  // and no node has begun `seq`.
  void switch_at(std::uint64_t seq);
  // The prepared generation is not wanted: no node will ever switch to it.
  void drop_prepared();
  std::uint64_t next_seq() const { return next_seq_; }
  // The first chunk that a further generation could begin with.
  std::uint64_t earliest_switch() const;
  bool has_prepared() const { return has_prepared_; }
  // The number of the generation that the next chunk runs in.
  std::uint64_t generation() const { return generation_of(next_seq_).number(); }
  // ... and of the one that was prepared last.
  std::uint64_t newest_generation() const { return generations_.back()->number(); }
  // Generations whose memory is held.
  std::size_t generations() const { return generations_.size(); }
  // How often a chunk that could have started waited for a hold.
  std::uint64_t holds_reached() const { return holds_reached_; }

  // Only valid elements of all-reduces are moved; the same on all nodes, before the first
  // operation.
  void use_lengths(bool is_on) { lengths_.use(is_on); }
  // Calls that this node asked the others about.
  std::uint64_t lengths_asked() const { return lengths_.asked(); }

  // Queues an operation; its state leaves kRunning when it is over. At most max_operations at once.
  void submit(Operation* operation);

  // The mesh's frames of data, credits and lengths, as in FrameSink.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header);
  void arrived(int peer, const FrameHeader& header, std::byte* payload);
  void sent(std::uint64_t cookie);

  // Ends every operation as failed. Payloads that still arrive go nowhere.
  void fail();
  bool has_failed() const { return failed_; }
  bool is_idle() const { return running_ == 0 && queued_ == 0; }
  // Where it is not idle: the nodes that the oldest work waits for (engine_waits.cc).
  std::vector<int> waits_for() const;
  // Of exact all-reduces.
  const Busy& busy() const { return busy_.done(); }

 private:
  struct Sum {  // that arrived
    int peer;
    DataFrame frame;
    std::uint32_t bytes;
    std::byte* payload;
    Arrival arrival;
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
  void sum_begins() override { trace_->sum_begins(); }
  void sum_ends(const Chunk& chunk, int group, Range range) override;

  static std::vector<int> waits_of(const Chunk& chunk);
  Generation& generation_of(std::uint64_t seq) const;
  Result<Generation*> generation_of(const DataFrame& frame, std::uint32_t bytes) const;
  void retire();
  void make_room_to_wait();

  void start_chunks();
  bool runs_here(const Operation& operation) const;
  bool has_room_for(const Operation& operation) const;
  bool finds_length(Operation* operation);
  std::uint64_t next_elements(const Operation& operation) const;
  void start(Chunk& chunk, Operation* operation);
  void choose_program(Chunk& chunk, const Operation& operation);
  static void cut(Chunk& chunk, std::uint64_t posted);
  static void keep(Chunk& chunk);
  void announce(Chunk& chunk);
  void feed_early(Chunk& chunk);
  void own_elements_final(Chunk& chunk, int group, int fragment, std::uint64_t elements);
  void finish_if_done(Chunk& chunk);
  void end_if_over(Operation* operation);
  void count(const Operation& operation) const;
  void pump(Generation& generation, int peer, int level);
  void hand_over(const Chunk& chunk, int peer, const FrameHeader& header, const std::byte* data,
                 bool is_final_sum);

  FrameHeader header_for(const Chunk& chunk, int level, int index, bool is_final,
                         Range range) const;
  void take(const Sum& sum);
  Result<Target> check(int peer, const DataFrame& frame, std::uint32_t bytes,
                       const Chunk& chunk) const;
  Target target_of_final(const Sum& sum, const Chunk& chunk) const;
  void give_back(Generation& generation, int peer, int level, const void* slot);
  Result<std::byte*> take_slot(int peer, const DataFrame& frame, std::uint32_t bytes);
  void take_credits(int peer, const CreditFrame& frame);
  void take_length(int peer, const LengthFrame& frame);

  Mesh* mesh_;
  EngineOptions options_;
  Violation violation_;
  std::unique_ptr<CallTrace> trace_;  // null: nothing is traced
  ChunkWindow chunk_window_;
  SendWindow send_window_;
  Lengths lengths_;
  BusyAccount busy_;
  // By number, one to kMaxGenerations; all but the prepared one know their first chunk.
  std::vector<std::unique_ptr<Generation>> generations_;
  std::vector<std::unique_ptr<Generation>> dropped_;
  bool has_prepared_ = false;
  std::uint64_t hold_ = Generation::kNotAgreed;
  std::uint64_t holds_reached_ = 0;
  bool hold_is_counted_ = false;
  std::vector<Chunk> chunks_;            // chunk s is chunks_[s % max_chunks]
  std::vector<std::vector<Sum>> early_;  // likewise: partial sums whose chunk has not begun here
  std::vector<int> frames_to_;           // scratch: partial frames per member
  std::vector<Operation*> operations_;   // ring buffer, oldest at first_operation_
  std::size_t first_operation_ = 0, queued_ = 0;
  std::uint64_t next_seq_ = 0;
  int running_ = 0;
  bool starting_ = false;
  int contributor_ = -1;  // whose frame, or own chunk, is being worked on
  bool failed_ = false;
  std::unique_ptr<SlotMemory> discard_;  // where unwanted payloads go; untouched till then
};

}  // namespace riffle
