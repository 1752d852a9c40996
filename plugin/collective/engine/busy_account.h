// BusyAccount: how much a communicator's exact all-reduces moved and how long any of them was under
// way. What a plan really takes is measured by it, beside what the planner predicted.
//
// A burst is a time in which one ran at least, from idle to idle. Threads: the engine's.
#pragma once

#include <cstdint>

namespace riffle {

struct Busy {
  std::uint64_t bytes = 0, busy_ns = 0, bursts = 0;
  std::uint64_t others = 0;  // bytes that others moved on the node's NICs meanwhile

  Busy since(const Busy& then) const {
    return {bytes - then.bytes, busy_ns - then.busy_ns, bursts - then.bursts, others - then.others};
  }
};

class BusyAccount {
 public:
  // `others`: bytes that others have moved in all.
  void began(std::uint64_t now_ns, std::uint64_t others) {
    if (running_++ > 0) return;
    since_ns_ = now_ns;
    others_ = others;
  }
  void ended(std::uint64_t now_ns, std::uint64_t others, std::uint64_t bytes) {
    done_.bytes += bytes;
    done_.busy_ns += now_ns - since_ns_;
    done_.others += others > others_ ? others - others_ : 0;
    since_ns_ = now_ns;
    others_ = others;
    if (--running_ == 0) ++done_.bursts;
  }
  void all_failed() { running_ = 0; }
  // Up to the last one that ended.
  const Busy& done() const { return done_; }

 private:
  Busy done_;
  int running_ = 0;
  std::uint64_t since_ns_ = 0, others_ = 0;
};

}  // namespace riffle
