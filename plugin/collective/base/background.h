// Background: work that takes too long for a progress thread (planning, making a generation).
#pragma once

#include <functional>

namespace riffle {

class Background {
 public:
  virtual ~Background() = default;
  // Runs `work` somewhere else, one piece of work after the other, then `then` on the caller's
  // progress thread; or neither, once the object is stopped. False: it cannot, and neither runs.
  // Owner's progress thread only.
  virtual bool run(std::function<void()> work, std::function<void()> then) = 0;
};

// Does it at once, for tests and simulations.
class InlineBackground final : public Background {
 public:
  bool run(std::function<void()> work, std::function<void()> then) override {
    work();
    then();
    return true;
  }
};

}  // namespace riffle
