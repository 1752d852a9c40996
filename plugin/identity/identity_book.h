// All that identities (identity.h) need of a process: its communicators, the staging regions of its
// coll objects, and the mask of events that NCCL is asked for. What NCCL's profiler tables pass in
// comes out as handles, and what COLLNET passes in as identities.
//
// Handles and contexts are numbers, never addresses of ours: NCCL may use one long after its
// collective, and it then names nothing.
//
// A CUDA graph's replays are calls that NCCL announces differently or not at all: while a
// communicator of the process that captured one lives, no call is sure.
//
// Any thread, but a CallQueue only on its own. One lock for everything that happens per
// communicator; events and calls take only the locks of identity_events.h and a reader's lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "plugin/identity/call_identity.h"
#include "plugin/identity/identity_events.h"
#include "plugin/identity/identity_queue.h"

namespace riffle::identity {

struct Counts {
  std::uint64_t sure = 0, unsure = 0;
  const char* last_reason = "";  // why the last unsure one was; static text
};

// A ProxyOp event.
struct ProxyOp {
  const void* parent = nullptr;  // a handle
  int channel = 0, peer = 0, steps = 0, chunk_bytes = 0;
};

class IdentityBook {
 public:
  static constexpr std::size_t kMostCommunicators = 1024;  // alive at a time

  // -- PROFILER. `mask`: NCCL's integer of wanted events, kept until end(). A null context says
  // that there are too many; its events are then ignored and its calls unsure.
  void* begin_communicator(const CommEvents::About& about, int* mask);
  void end_communicator(void* context);
  // ncclAllReduce etc. was called; its Coll event will name the handle as its parent.
  void* api_started(void* context, bool is_captured);
  // NULL for what has no calls of ours.
  void* coll_started(void* context, const void* api, const CollStart& start);
  void proxy_op_started(CallQueue& queue, void* context, const ProxyOp& op);
  // The progress thread goes to sleep, having nothing to do.
  void slept(CallQueue& queue) { rest(queue); }
  // The thread ends.
  void retire(CallQueue& queue) { rest(queue); }

  // -- COLLNET (identity.h)
  void begin_coll(std::uint64_t coll, int nodes);
  void add_region(std::uint64_t coll, const void* base, std::size_t bytes);
  void drop_region(std::uint64_t coll, const void* base);
  void end_coll(std::uint64_t coll);
  CallIdentity identify(CallQueue& queue, const CallShape& call);
  CallIdentity look(const CallQueue& queue, const CallShape& call) const;
  Counts counts() const;
  // Whether a communicator lives whose events are asked for.
  bool is_told() const;

 private:
  struct Region {
    std::uint64_t coll = 0;
    std::uintptr_t base = 0;
    std::uint64_t bytes = 0;
  };
  struct Coll {
    std::uint64_t coll = 0;
    int nodes = 0;
  };
  struct Mask {
    int* mask = nullptr;
    int users = 0;
  };
  struct Slot {
    CommEvents events;
    std::atomic<bool> has_graphs{false};
    int* mask = nullptr;  // under mutex_
  };

  Slot* slot_of(const void* context, std::uint32_t* life) const;
  CollObject object_of(const CallShape& call) const;
  const char* nothing_to_go_by(const CallQueue& queue) const;
  void meet(CallQueue& queue) const;
  void rest(CallQueue& queue);
  void note_doubt(bool before, const CallQueue& queue);
  void write_masks();

  std::array<std::atomic<Slot*>, kMostCommunicators> slots_{};
  std::atomic<std::uint64_t> communicators_{0};  // ever
  std::atomic<std::uint64_t> announcements_{0};  // ever
  std::atomic<int> with_graphs_{0};              // alive
  // Communicators with graphs that ended: their replays may still be under way on threads that have
  // not rested since.
  std::atomic<std::uint64_t> graphs_ended_{0};
  std::atomic<std::uint64_t> sure_{0}, unsure_{0};
  std::atomic<const char*> last_reason_{""};

  mutable std::mutex mutex_;  // communicators, masks, doubts
  std::vector<std::unique_ptr<Slot>> owned_;
  std::vector<std::size_t> free_;
  std::vector<Mask> masks_;
  int in_doubt_ = 0;  // threads

  mutable std::shared_mutex objects_mutex_;
  std::vector<Region> regions_;
  std::vector<Coll> colls_;
};

}  // namespace riffle::identity
