#include "plugin/collective/engine/operation.h"

#include "plugin/collective/engine/shared_operation.h"

namespace riffle {

void Operation::copy_call(const Operation& other) {
  collective = other.collective;
  type = other.type;
  op = other.op;
  send = other.send;
  recv = other.recv;
  count = other.count;
  block = other.block;
  window = other.window;
  is_dry = other.is_dry;
  step = other.step;
  lane = other.lane;
  valid = other.valid;
}

void Operation::end(State outcome) {
  const State before = state.load(std::memory_order_relaxed);
  if (before == State::kDone || before == State::kFailed) return;
  // Of a part the shared operation is told last: its owner may then use both again.
  SharedOperation* const whole = shared;
  state.store(outcome, std::memory_order_release);
  if (whole != nullptr) whole->part_over(outcome);
}

}  // namespace riffle
