// RelaxedRun: what one relaxed mode needs on one node from its beginning to its end: the agreed
// sequence of calls, the state of every gradient element (float32), and staging memory.
//
// Calls of the mode are cut into segments, even ones of at most a chunk. A segment is one
// operation of the engine on staging memory of its own, with a trailer behind its elements
// (collective/relaxed/rules/trailer.h): groups differ from segment to segment, so each carries what
// its group has to know. Segment i of a step uses lane i of the plan, so an element meets the same
// lane in every step.
//
// The sparse mode and sums in a narrower type have none of this but the sequence: their calls run
// in a SparseRun and in a NarrowRun.
//
// Threads: make() in the Background, the rest on NCCL's progress thread. All memory comes from
// make(): a run that exists never fails for want of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/base/slot_memory.h"
#include "plugin/collective/base/sync_mode.h"
#include "plugin/collective/engine/operation.h"
#include "plugin/collective/relaxed/narrow_run.h"
#include "plugin/collective/relaxed/rules/shadow_rule.h"
#include "plugin/collective/sparse/sparse_run.h"
#include "plugin/identity/layout.h"

namespace riffle {

// The sequence of calls as a node knows it: call number n is pieces[(n - phase) mod their number].
struct KnownCalls {
  std::vector<Layout::Piece> pieces;
  std::uint64_t phase = 0;
  std::uint64_t digest = 0;  // of all of this, the same on all nodes that know the same
};
std::uint64_t digest_of(std::uint64_t layout_digest, std::uint64_t period, std::uint64_t phase);

struct RelaxedOptions {
  SyncSettings settings;
  LayoutOptions layout;
  int rank = 0, size = 0;             // nodes
  std::size_t chunk_bytes = 1 << 20;  // of the engine: the most one segment takes
  std::size_t staging_bytes = 64 << 20;
};

class RelaxedRun {
 public:
  // Operations of all segments at once; the engine must have room for them.
  static constexpr std::size_t kMaxSegments = 512;
  // NCCL has up to so many calls of a group of channels under way, and asks about none of them
  // while the next one is refused for want of room.
  static constexpr std::size_t kCallsUnderWay = 8;
  static constexpr std::size_t kMostOfACall = kMaxSegments / kCallsUnderWay;
  static constexpr std::uint32_t kNone = ~0u;

  struct Position {
    Layout::Piece piece;
    bool is_relaxed = false;  // or its collective is too small
    bool is_busy = false;     // its last call is not over
    std::uint32_t segments = 0;
    std::uint64_t segment_elements = 0;  // of all but the last
    std::uint64_t first_lane = 0;
    float* state = nullptr;  // piece.valid elements, as the next two
    // With momentum: the own and the job's momentum. In the background: the rule's (shadow_rule.h).
    float* second = nullptr;
    float* third = nullptr;
    // shadow_sync: the segments of the round under way that are not over yet; its step.
    std::uint32_t round = kNone;
    std::uint64_t round_step = 0;
    bool round_takes_part = false;
    std::vector<bool> is_due;  // by segment: a round's result is to be brought into an answer

    std::uint64_t first_of(std::uint32_t segment) const { return segment * segment_elements; }
    std::uint64_t count_of(std::uint32_t segment) const {
      return std::min(segment_elements, piece.valid - first_of(segment));
    }
    rules::ShadowState shadow_state(std::uint64_t first) const {
      return {state + first, second == nullptr ? nullptr : second + first,
              third == nullptr ? nullptr : third + first};
    }
  };
  struct Segment {
    Operation operation;
    float* data = nullptr;
    std::uint32_t next = kNone;
    std::uint64_t first = 0, count = 0;  // elements of the call, without the trailer
  };

  static Result<std::shared_ptr<RelaxedRun>> make(const ModeOrder& order, const KnownCalls& calls,
                                                  const RelaxedOptions& options);

  // No operation of it is under way.
  bool is_quiet() const;

  SyncMode mode() const { return mode_; }
  SparseRun* sparse() const { return sparse_.get(); }  // null in other modes
  NarrowRun* narrow() const { return narrow_.get(); }  // null in other modes
  float momentum() const { return momentum_; }
  // shadow_sync; null in other modes.
  const rules::ShadowRule* shadow_rule() const { return shadow_rule_.get(); }
  bool has_rounds_over_all() const { return has_rounds_over_all_; }
  std::uint64_t shadow_steps() const { return shadow_steps_; }
  std::uint64_t period() const { return positions_.size(); }
  std::uint64_t phase() const { return phase_; }
  std::uint64_t digest() const { return digest_; }
  std::size_t trailer_elements() const { return trailer_elements_; }
  std::size_t bytes() const { return bytes_; }
  std::vector<Position>& positions() { return positions_; }
  Position& position(std::size_t i) { return positions_[i]; }
  Segment& segment(std::uint32_t i) { return segments_[i]; }

  // What all members of a group must agree on for one segment.
  std::uint32_t digest_of(std::size_t position, std::uint32_t segment, std::uint64_t step,
                          bool is_full) const;

  // A chain of `count` segments, or kNone if there are not so many.
  std::uint32_t take(std::uint32_t count);
  void give_back(std::uint32_t segment);

 private:
  RelaxedRun() = default;
  Status make_sparse(const ModeOrder& order, const KnownCalls& calls,
                     const RelaxedOptions& options);
  Status make_narrow(const KnownCalls& calls, const RelaxedOptions& options);

  SyncMode mode_ = SyncMode::kExact;
  float momentum_ = 0;
  std::unique_ptr<rules::ShadowRule> shadow_rule_;
  bool has_rounds_over_all_ = false;
  std::uint64_t shadow_steps_ = 1;
  std::uint64_t phase_ = 0, digest_ = 0;
  std::size_t trailer_elements_ = 0, bytes_ = 0;
  std::vector<Position> positions_;
  std::vector<Segment> segments_;
  std::uint32_t free_ = kNone, free_count_ = 0;
  std::unique_ptr<SlotMemory> memory_;
  std::unique_ptr<SparseRun> sparse_;
  std::unique_ptr<NarrowRun> narrow_;
};

}  // namespace riffle
