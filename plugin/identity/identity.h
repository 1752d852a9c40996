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
// This is the process-wide front of identity_book.h, which knows the calling thread's queue; the
// rules are identity_queue.h's. All functions from any thread, but calls on one coll object come
// from one thread, which is also the one that its ProxyOp events come from (NCCL's progress
// thread). Locks are held for nanoseconds; nothing is allocated per call after a warm-up, and
// nothing thrown but std::bad_alloc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/identity/call_identity.h"
#include "plugin/identity/identity_book.h"

namespace riffle::identity {

struct Options {
  // Without identities something that was asked for is missing: a mode, or they themselves.
  bool is_needed = false;
  // This process asks NCCL for events. Where it is false nothing below needs to be called.
  bool is_wanted = false;
  bool says_totals = false;  // RIFFLE_IDENTITY=on: one line (INFO) at the end of a coll object
};

// NCCL tells of some communicator that lives.
bool is_told();
// Whether calls are to be looked up: told, or missed.
bool is_looked_up(const Options& options);

// The first half: for the profiler's tables.
IdentityBook& book();
CallQueue& this_thread();  // ends with the thread

// -- For COLLNET.

// A coll object, its staging region (the same one may come many times), and their ends.
void begin_coll(std::uint64_t coll, int nodes);
void add_region(std::uint64_t coll, const void* base, std::size_t bytes);
void drop_region(std::uint64_t coll, const void* base);
void end_coll(std::uint64_t coll, const Options& options);

// Once per accepted call, in order, on the thread that makes the calls. A call that is refused
// (null request) must not come here: see first whether there is room, or look(). The first unsure
// call of the process is said once (INFO).
CallIdentity identify(const CallShape& call);
// The same without taking the call: the next look() or identify() gives the same answer.
CallIdentity look(const CallShape& call);

Counts counts();  // of the process

}  // namespace riffle::identity
