// SparseCalls: the calls of the sparse mode (docs/sparse.md), whose segments are exchanged straight
// from and to the job's memory (sparse_runner.h); and where residuals go when the mode has ended:
// each into the next exact sum of the element that it belongs to.
//
// Threads: NCCL's progress thread.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "plugin/collective/relaxed/relaxed_counts.h"
#include "plugin/collective/relaxed/staged_call.h"
#include "plugin/collective/sparse/sparse_segment.h"
#include "plugin/identity/call_identity.h"

namespace riffle {

class SparseCalls {
 public:
  // All must outlive this.
  SparseCalls(PostOperation post, RelaxedCounts& counts, JobMemory& memory)
      : post_(std::move(post)), counts_(counts), memory_(memory) {}

  // For the segments of a call at this place.
  bool has_room(const RelaxedRun::Position& position) const;
  // Posts the segments of a call that is filled in.
  void stage(const CallShape& shape, const CallPlace& place, StagedCall* call);
  // True when over; once after an error nothing of the call is in use any more.
  Result<bool> test(StagedCall* call);

  // The mode has ended; residuals that are left wait for exact sums.
  void owe(std::shared_ptr<RelaxedRun> run) { owing_ = std::move(run); }
  // An exact call: residuals of its elements go into its input.
  void bring_residual(const CallShape& shape, const CallIdentity& identity, StagedCall* call);
  // The next mode begins. What still waits belongs to calls that did not come again.
  void give_up_residuals();
  // For tests: what owes residuals. Null: nothing.
  RelaxedRun* owing() const { return owing_.get(); }

 private:
  void count_outcome(SparseSegment::Outcome outcome);

  const PostOperation post_;
  RelaxedCounts& counts_;
  JobMemory& memory_;
  std::size_t under_way_ = 0;  // segments
  std::shared_ptr<RelaxedRun> owing_;
  bool told_mismatch_ = false, told_not_finite_ = false;
};

}  // namespace riffle
