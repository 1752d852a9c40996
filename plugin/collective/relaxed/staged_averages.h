// StagedAverages: the calls of ds_sync, moshpit and shadow_sync: into staging memory, through their
// groups, and what to make of the result (relaxed_calls.h has the rules).
//
// Threads: NCCL's progress thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "plugin/collective/relaxed/relaxed_counts.h"
#include "plugin/collective/relaxed/rules/gradient_rules.h"
#include "plugin/collective/relaxed/staged_call.h"
#include "plugin/identity/call_identity.h"

namespace riffle {

class StagedAverages {
 public:
  // `nodes` of connect. All must outlive this.
  StagedAverages(int nodes, PostOperation post, RelaxedCounts& counts, JobMemory& memory)
      : nodes_(nodes), post_(std::move(post)), counts_(counts), memory_(memory) {}

  // What a call at this place needs besides a request; false: not now, nothing is taken.
  bool reserve(RelaxedRun& run, const CallPlace& place, StagedCall* call);
  // Posts the segments of a call that is filled in and has what reserve() took.
  void stage(const CallShape& shape, const CallPlace& place, StagedCall* call);
  // True when over; once after an error nothing of the call is in use any more.
  Result<bool> test(StagedCall* call);

 private:
  void collect(RelaxedRun& run, RelaxedRun::Position& position);
  void count_gap(std::uint64_t steps);
  void step_alone(const CallPlace& place, StagedCall* call);
  void post(RelaxedRun& run, RelaxedRun::Segment& segment, const CallPlace& place,
            std::uint32_t number, bool takes_part, bool is_finite, bool is_over_all);
  rules::MomentumState momentum_of(const RelaxedRun::Position& position, std::uint64_t first) const;
  void finish(const StagedCall& call, RelaxedRun::Segment& segment);
  void keep(const StagedCall& call, const RelaxedRun::Segment& segment, float* state);

  const int nodes_;
  const PostOperation post_;
  RelaxedCounts& counts_;
  JobMemory& memory_;
  bool has_failed_ = false;  // a background round
  bool is_waiting_ = false;  // for a round
  bool told_mismatch_ = false, told_not_finite_ = false;
  // Of calls that failed: what they sent and await may still be on its way.
  std::vector<std::shared_ptr<RelaxedRun>> failed_;
};

}  // namespace riffle
