#include "lab/simulation/dry_calls.h"

#include <algorithm>
#include <utility>

#include "topology/base/check.h"

namespace riffle::sim {
namespace {

// The memory of all nodes: addresses that must not be touched, which the mapping makes sure of by
// not being there.
std::byte* nowhere() { return reinterpret_cast<std::byte*>(std::uintptr_t{1} << 40); }

}  // namespace

DryCalls::DryCalls(std::uint64_t call_bytes, int outstanding,
                   std::function<void(Operation*)> submit)
    : call_bytes_(call_bytes), submit_(std::move(submit)), operations_(outstanding) {}

void DryCalls::begin(std::uint64_t bytes) {
  RIFFLE_CHECK(is_finished(), "one all-reduce after the other");
  bytes_ = bytes;
  next_byte_ = 0;
  progress();
}

void DryCalls::progress() {
  while (done_ < posted_ && at(done_).state != Operation::State::kRunning) ++done_;
  while (next_byte_ < bytes_ && posted_ - done_ < operations_.size()) post();
}

void DryCalls::post() {
  const std::uint64_t size = std::min(call_bytes_, bytes_ - next_byte_);
  const bool floats = bytes_ % sizeof(float) == 0 && call_bytes_ % sizeof(float) == 0;
  Operation& o = at(posted_++);
  o.type = floats ? DataType::kFloat32 : DataType::kUint8;
  o.count = floats ? size / sizeof(float) : size;
  o.send = o.recv = nowhere() + next_byte_;
  o.is_dry = true;
  o.state = Operation::State::kRunning;
  next_byte_ += size;
  submit_(&o);
}

}  // namespace riffle::sim
