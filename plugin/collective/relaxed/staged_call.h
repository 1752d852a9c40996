// StagedCall: an all-reduce of NCCL's that a mode runs, from RelaxedCalls::all_reduce() until its
// test() says that it is over; and what those that run it share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "plugin/collective/relaxed/relaxed_run.h"

namespace riffle {

struct StagedCall {
  std::shared_ptr<RelaxedRun> run;  // null: nothing is staged
  std::size_t position = 0;
  std::uint32_t segment = RelaxedRun::kNone;  // the first that is not over
  NarrowSlot* narrow = nullptr;               // of a sum in a narrower type
  const std::byte* send = nullptr;
  std::byte* recv = nullptr;
  const std::byte* kept = nullptr;  // as Operation::kept; the poster's, set before all_reduce()
  bool takes_part = false;
  bool is_elsewhere = false;  // surely not the call of its place: the place's state is not its own
  bool is_full = false;
  bool has_failed = false;
  // Not staged, but to be run exactly, on this in place of what the job sends: with residuals of a
  // sparse mode that has ended added. Empty: as it is.
  std::vector<std::byte> input;
};

// Where a call stands in the running mode.
struct CallPlace {
  std::size_t position = 0;
  std::uint64_t step = 0;
  bool is_full = false;  // over all nodes
};

using PostOperation = std::function<void(Operation*)>;  // to the engine

// The job's memory, which NCCL may take away.
struct JobMemory {
  std::mutex mutex;        // while it is touched
  bool is_fenced = false;  // guarded by the mutex: from now on it is not

  void fence() {
    const std::lock_guard lock(mutex);
    is_fenced = true;
  }
};

}  // namespace riffle
