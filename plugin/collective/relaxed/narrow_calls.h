// NarrowCalls: the calls of sums in a narrower type (RIFFLE_WIRE; docs/policies.md). What travels
// and is added up is bfloat16 or float8 in blocks; every addition is in float32 and rounded once.
//
//   sent = rounded(g + error)
//   result = sum over all nodes of what they sent, rounded with every addition
//   error <- g + error - sent
//
// so what a node's own rounding kept back comes with the same gradient of the next step (1-bit
// SGD, Seide et al. 2014, section 3; EF-SGD, Karimireddy et al. 2019, algorithm 2). What partial
// sums lose is not made good. The result has the same bits on all nodes.
//
// A node that is not sure which gradients a call holds sends them without an error, all that the
// call has, and keeps its errors as they are: what this rounding takes is given up. The agreement
// ends the mode then, as any doubt does.
// Nor does an error change where its node's own gradient is no number; what the others held back of
// such a sum, which the job will hardly use, they send with the next one. What errors hold when the
// mode ends is given up: less than one rounding each.
//
// Threads: NCCL's progress thread.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "plugin/collective/relaxed/relaxed_counts.h"
#include "plugin/collective/relaxed/staged_call.h"

namespace riffle {

class NarrowCalls {
 public:
  // All must outlive this.
  NarrowCalls(PostOperation post, RelaxedCounts& counts, JobMemory& memory)
      : post_(std::move(post)), counts_(counts), memory_(memory) {}

  // What a call needs besides a request; false: not now, nothing is taken.
  static bool reserve(RelaxedRun& run, StagedCall* call);
  // Posts a call that is filled in and has what reserve() took.
  void stage(StagedCall* call);
  // True when over; once after an error nothing of the call is in use any more.
  Result<bool> test(StagedCall* call);

 private:
  void fill(const StagedCall& call);
  bool finish(const StagedCall& call);

  const PostOperation post_;
  RelaxedCounts& counts_;
  JobMemory& memory_;
  bool told_not_finite_ = false;
  // Of calls that failed: what they sent may still be on its way.
  std::vector<std::shared_ptr<RelaxedRun>> failed_;
};

}  // namespace riffle
