// Identity: which collective of the job an iallreduce call belongs to, which elements it covers and
// how many of them are valid.
//
// COLLNET is told addresses of staging memory and a padded count. The profiler sees the job's
// buffers and counts (Coll events, on the application's threads) and how each collective is cut
// (ProxyOp events, on the progress thread that makes the calls): one queue of ProxyOp starts per
// thread tells what comes next. Everything that can be checked is (datatype, count, place in the
// staging region, order within the communicator): an answer is right or not sure, with a reason.
// Doubt lasts until the thread was seen to have nothing left to do.
//
// This is the process-wide front: the C border calls the first half, COLLNET's users the second.
// The rules are identity_queue.h's. All functions from any thread, but calls on one coll object
// come from one thread, which is also the one that its ProxyOp events come from (NCCL's progress
// thread). Locks are held for nanoseconds; nothing is allocated per call after a warm-up. Nothing
// throws but std::bad_alloc from the calls that add (begin_communicator, add_region).
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/policy/call_identity.h"

namespace riffle::identity {

// Somebody uses identities (RIFFLE_IDENTITY, and the modes that need it): ask NCCL for events.
bool is_wanted();

// -- for COLLNET

// The staging region of a coll object (regMr; the same region many times) and its end (the first
// deregMr, or closeColl).
void add_region(std::uint64_t coll, const void* base, std::size_t bytes);
void drop_coll(std::uint64_t coll);

// Once per accepted call, in order, on the thread that makes the calls. A call that is refused
// (null request) must not come here: see first whether there is room, or look().
CallIdentity identify(const CallShape& call);
// The same without taking the call: the next look() or identify() gives the same answer.
CallIdentity look(const CallShape& call);

struct Counts {
  std::uint64_t sure = 0, unsure = 0;
  const char* last_reason = "";  // why the last unsure one was
};
Counts counts();  // of the process

}  // namespace riffle::identity
