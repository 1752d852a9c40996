// SparseRunner: runs sparse exchanges (sparse/exchange.h) over a mesh, several at once.
//
// A segment (sparse_segment.h) is one exchange; all nodes submit the same ones in the same order,
// and that order numbers them. Every step is one message out and one in. Up to kWindow run at once,
// and none waits for a later one: a message that comes before its segment was submitted here waits
// in the inbox of its number and step. A node sends for segment s only when it is done with s -
// kWindow and all before, which it can only be when all nodes have begun those; so no
// messages lie further ahead than two windows, and that many inboxes do.
//
// Each message carries what its sender has heard so far of the segment: whether any node is in
// doubt about which elements it has, and the least and the largest digest. In the steps before the
// all-gather each node has heard from all, so all nodes know alike, before any state changes,
// whether the result is to be used. If it is not, or if it is not finite, the segment is done again
// by a second exchange at density 1, which is a dense sum:
//
//   a node in doubt       it brings g and keeps its residual e; the others bring g + e, clear e
//   digests differ        all bring g and keep e
//   not finite            all bring g and keep e; elements that are not finite come out as the
//                         first exchange found them
//
// (For ef21, whose state is no debt, always g.) No mass is lost, and all nodes get the same bits.
//
// A segment of a mode that was ordered for more nodes than the mesh has (some were lost since, see
// survivors.h) is dense from the first, g + e of all who are sure, in one team of all.
//
// Frames: seq number of the segment, credit_class round and step, key and the upper half of total
// the digests, flags what was heard, offset and the lower half of total the place in the message.
//
// The processor's work (selection, sums) is done here, on the reactor's thread: it is a fraction of
// what a dense reduction costs (docs/sparse.md).
//
// Threads: the mesh's owner. Buffers grow in the first calls and are then reused; the dense round
// allocates. Errors: a message that does not fit is refused with a Status naming it, as the engine
// does; fail() ends everything.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "plugin/collective/base/frames.h"
#include "plugin/collective/sparse/sparse_segment.h"
#include "plugin/collective/sparse/sparse_work.h"
#include "plugin/telemetry/comm_counters.h"
#include "plugin/transport/base/frame_sink.h"

namespace riffle {

class Mesh;

class SparseRunner {
 public:
  static constexpr std::uint64_t kWindow = 16;
  struct Options {
    std::uint64_t most_elements = 1 << 19;  // of a segment, stale ones included
    CommCounters* counters = nullptr;
    SparseWork* work = nullptr;  // null: not counted
  };
  // `violation` hears of a peer whose message turned out not to fit only after it had been
  // accepted.
  using Violation = std::function<void(int peer, const Status& why)>;
  SparseRunner(Mesh* mesh, const Options& options, Violation violation);
  ~SparseRunner();
  SparseRunner(const SparseRunner&) = delete;
  SparseRunner& operator=(const SparseRunner&) = delete;

  // Queues a segment; the state of its own operation, or of the one given in place of that, leaves
  // kRunning when it is over.
  void submit(SparseSegment* segment) { submit(segment, &segment->operation); }
  void submit(SparseSegment* segment, Operation* operation);

  // The mesh's kSparse frames, as in FrameSink.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header);
  void arrived(int peer, const FrameHeader& header, std::byte* payload);
  void sent(std::uint64_t cookie);

  // Ends every segment as failed; no memory of theirs is touched any more.
  void fail();
  bool is_idle() const { return oldest_ == submitted_; }
  // Where it is not idle: the nodes that the oldest segment waits for.
  std::vector<int> waits_for() const;

 private:
  static constexpr std::uint64_t kSlots = 2 * kWindow;
  static constexpr int kRounds = 2;
  struct Heard {  // of all nodes so far
    bool is_in_doubt = false;
    std::uint32_t least_digest = ~0u, largest_digest = 0;
    void add(const Heard& other);
    bool is_mixed_up() const { return least_digest != largest_digest; }
  };
  struct Inbox {
    int from = -1;  // -1: nothing has come
    Heard heard;
    // Bytes that have no place yet, and bytes that are not here yet. A part that came twice would
    // make the first go below zero, so memory that is being received into stays.
    std::uint64_t unplaced = 0, missing = 0;
    std::vector<std::uint8_t> bytes;
    bool is_complete() const { return from >= 0 && missing == 0; }
  };
  enum class Phase { kFree, kWaiting, kRunning, kDone };
  struct Slot {
    std::uint64_t seq = 0;
    Phase phase = Phase::kFree;
    SparseSegment* segment = nullptr;
    Operation* operation = nullptr;
    const SparsePlaces* places = nullptr;
    bool is_dense = false;  // from the first round on
    int round = 0;
    int step = 0;
    int parts_under_way = 0;
    Heard heard;
    std::unique_ptr<sparse::Exchange> first;   // the pool's
    std::unique_ptr<sparse::Exchange> second;  // dense
    sparse::ChunkState scratch;                // of the second
    bool takes_residual = false;               // into the second
    std::uint64_t began_ns = 0;
    std::vector<Inbox> inboxes;  // [round * most_steps_ + step]
    std::vector<std::vector<std::uint8_t>> outboxes;
    sparse::Exchange& exchange() const { return second ? *second : *first; }
  };

  Slot& slot_of(std::uint64_t seq) { return slots_[seq % kSlots]; }
  std::size_t index_of(int round, int step) const {
    return static_cast<std::size_t>(round) * most_steps_ + static_cast<std::size_t>(step);
  }
  void open(Slot& slot, std::uint64_t seq);
  void start_segments();
  void start(Slot& slot);
  void begin_dense(Slot& slot, bool takes_residual);
  std::vector<float> dense_input(const Slot& slot, bool takes_residual) const;
  void go_on(Slot& slot);
  void send_step(Slot& slot);
  void advance(Slot& slot);
  bool take(Slot& slot, Inbox& inbox);
  void end_round(Slot& slot);
  void finish(Slot& slot);
  void close(Slot& slot);
  void retire();
  std::uint64_t now() const;

  Mesh* const mesh_;
  const Options options_;
  const Violation violation_;
  const std::size_t most_steps_;
  const std::uint64_t most_bytes_;  // of a message
  std::vector<Slot> slots_;         // segment s is slots_[s % kSlots]
  struct Queued {
    SparseSegment* segment;
    Operation* operation;
  };
  std::deque<Queued> queue_;  // submitted, beyond the slots
  SparsePlaces all_;          // in the order of their ranks
  bool is_starting_ = false;
  std::uint64_t oldest_ = 0;     // the first that is not over
  std::uint64_t started_ = 0;    // the first that has not begun
  std::uint64_t submitted_ = 0;  // how many there are
  std::uint64_t active_since_ns_ = 0;
  bool failed_ = false;
  std::vector<std::byte> discard_;  // where payloads go that are not wanted
};

}  // namespace riffle
