// NarrowCalls: the calls of sums in a narrower type (RIFFLE_WIRE; docs/policies.md). What travels
// and is added up is bfloat16 or float8 in blocks; every addition is in float32 and rounded once.
//
//   sent = rounded(g + error); result = sum over all nodes of what they sent; error <- g + error - sent
//
// so what a node's own rounding kept back comes with the same gradient of the next step (1-bit SGD,
// Seide et al. 2014, section 3; EF-SGD, Karimireddy et al. 2019, algorithm 2). Partial sums are
// rounded, too, as often as the plan has stages; that is not made good. The result has the same bits
// on all nodes.
//
// A node that is not sure which gradients a call holds says so with the sum; all nodes then sum the
// call exactly, from the job's memory, and no error changes. What errors hold when the mode ends is
// given up: less than one rounding each. Elements whose sum is no number keep their error.
//
// Threads: NCCL's progress thread.
#pragma once

#include <utility>

#include "plugin/collective/relaxed/relaxed_counts.h"
#include "plugin/collective/relaxed/staged_call.h"
#include "plugin/identity/call_identity.h"

namespace riffle {

class NarrowCalls {
 public:
  // All must outlive this.
  NarrowCalls(PostOperation post, RelaxedCounts& counts, JobMemory& memory)
      : post_(std::move(post)), counts_(counts), memory_(memory) {}

  // What a call needs besides a request; false: not now, nothing is taken.
  static bool reserve(RelaxedRun& run, StagedCall* call);
  // Posts a call that is filled in and has what reserve() took.
  void stage(const CallShape& shape, const CallPlace& place, StagedCall* call);
  // True when over; once after an error nothing of the call is in use any more.
  Result<bool> test(StagedCall* call);

 private:
  void fill(const StagedCall& call);
  void sum_exactly(const StagedCall& call);
  void finish(const StagedCall& call);

  const PostOperation post_;
  RelaxedCounts& counts_;
  JobMemory& memory_;
  bool told_doubt_ = false;
};

}  // namespace riffle
