// A measured process: does what the hub says (control.h) with one library's all-reduce.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/harness/control.h"
#include "lab/nccl_host/work/reduction.h"
#include "topology/base/status.h"

namespace riffle::bench {

struct Work {
  const void* send = nullptr;  // equal to receive for a library that reduces in place
  void* receive = nullptr;
  std::size_t count = 0;
  DataType type = DataType::kFloat32;
  host::Op op = host::Op::kSum;
};

// One library's all-reduce, on the caller's thread.
class AllReducer {
 public:
  virtual ~AllReducer() = default;
  virtual bool in_place() const { return false; }
  // Before the first run of this work and whenever it changes; not timed.
  virtual Status prepare(const Work&) { return Status::ok(); }
  virtual Status run(const Work& work) = 0;  // returns when receive holds the result
  // Results may be those of the ranks that are left.
  virtual bool survives_losses() const { return false; }
  // CPU time that the library has used in this process so far; by default all of the process's.
  virtual std::int64_t cpu_us() const;
};

// Serves until the hub quits. A failure of the library is told to the hub and returned.
Status serve(ControlLine& line, AllReducer& library, int rank, int ranks);

}  // namespace riffle::bench
