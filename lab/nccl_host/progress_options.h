// How the proxies of a communicator are driven.
//
// NCCL's proxy spins (with yields). Ranks of a test share a few cores, so this one does so for
// spin_us after it has taken a launch only; later it sleeps when nothing moves, first for
// idle_sleep_us, then longer. idle_sleep_us = 0: it never sleeps.
//
// in_wait: there is no thread for it, and the one that waits for a collective does its work;
// outside wait() and destroy() nothing moves. Where ranks share cores, handing a small all-reduce
// over to another thread and back takes longer than the all-reduce.
#pragma once

namespace riffle::host {

struct ProgressOptions {
  int spin_us = 0;  // but always a few times
  int idle_sleep_us = 30;
  bool in_wait = false;
};

}  // namespace riffle::host
