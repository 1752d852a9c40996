// A random job on a small model of NCCL's host side: its communicators, buckets, groups, graphs and
// aborts, all drawn from a seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "plugin/identity/identity_book.h"
#include "test/plugin/identity/identity_job.h"
#include "test/plugin/identity/identity_progress.h"

namespace riffle::identity {

class World {
 public:
  World(std::uint64_t seed, const Troubles& troubles) : random_(seed), troubles_(troubles) {}
  ~World() {
    for (Communicator& c : comms_) end(c);
  }

  Tally run() {
    const std::size_t groups = 1 + pick(3);
    for (std::size_t g = 0; g < groups; ++g) begin_group();
    const std::size_t steps = 2 + pick(4);
    make_buckets();
    for (std::size_t s = 0; s < steps; ++s) {
      if (s == 1 && chance(2)) make_buckets();  // DDP builds its buckets anew
      for (const Bucket& b : buckets_) {
        post(b);
        if (troubles_.aborts && pick(40) == 0) abort_one();
        if (is_capturing_ && pick(3) == 0) replay();
        if (chance(2)) advance(pick(40));
      }
      if (troubles_.captures_graphs && pick(4) == 0) capture();
      flush_group();
      if (chance(2)) drain();
    }
    drain();
    return progress_.tally();
  }

 private:
  struct Bucket {
    std::size_t comm = 0;
    std::uint64_t buffer = 0, output = 0, count = 0, chunk_bytes = 0, channels = 1;
    int type = 3, op = 0;
    bool is_registered = false;
    bool is_ring = false;
  };

  std::uint64_t pick(std::uint64_t n) { return random_() % n; }
  bool chance(std::uint64_t n) { return pick(n) == 0; }
  std::uint64_t fresh() { return next_address_ += std::uint64_t{1} << 32; }

  // One progress thread: a communicator, and perhaps children that share its resources.
  void begin_group() {
    threads_.emplace_back();
    const std::uint64_t channels = chance(3) ? 1 + pick(64) : 1 + pick(8);
    const int nodes = 2 + static_cast<int>(pick(7));
    const std::size_t members = chance(2) ? 1 : 2 + pick(2);
    for (std::size_t m = 0; m < members; ++m) {
      Communicator c;
      c.id = 1 + pick(1 << 20);
      c.thread = threads_.size() - 1;
      c.channels = channels;
      c.nodes = m == 0 ? nodes : chance(2) ? nodes : std::max(2, nodes / 2);
      c.ranks = c.nodes * (1 + static_cast<int>(pick(2)));
      const bool has_own = m == 0 || c.nodes != nodes || chance(4);
      if (has_own) {
        c.coll = next_coll_++;
        c.region = fresh();
        book_.begin_coll(c.coll, c.nodes);
        for (int i = 0; i < 2; ++i) {
          book_.add_region(c.coll, pointer(c.region), 16 * c.channels * kSlotBytes);
        }
      } else {
        c.coll = comms_[comms_.size() - m].coll;
        c.region = comms_[comms_.size() - m].region;
      }
      c.context = book_.begin_communicator({c.id, c.ranks, c.nodes}, &mask_);
      comms_.push_back(c);
    }
  }

  void make_buckets() {
    buckets_.clear();
    const std::size_t n = 1 + pick(6);
    const bool are_equal = chance(3);  // the hardest to tell apart
    for (std::size_t i = 0; i < n; ++i) {
      Bucket b;
      b.comm = pick(comms_.size());
      if (i > 0 && are_equal) {
        b = buckets_[0];
        if (chance(3)) b.comm = pick(comms_.size());
      } else {
        b.type = static_cast<int>(pick(5));
        b.op = static_cast<int>(pick(4));
        b.chunk_bytes = std::uint64_t{32768} << pick(4);
        b.is_registered = chance(12);
        b.is_ring = chance(8);
        b.channels = b.is_registered ? 1 : 1 + pick(comms_[b.comm].channels);
        // Whole steps, tails, few bytes; few calls, so that a job is quick.
        const std::uint64_t per_step = b.channels * b.chunk_bytes / kTypeBytes[b.type];
        b.count = chance(3) ? 1 + pick(64) : 1 + pick(per_step * (1 + pick(chance(8) ? 20 : 4)));
        if (chance(4)) b.count = per_step * (1 + pick(9));
      }
      b.channels = std::min(b.channels, comms_[b.comm].channels);
      b.buffer = fresh();
      b.output = chance(2) ? b.buffer : fresh();
      buckets_.push_back(b);
    }
  }

  // The application calls ncclAllReduce, alone or as part of a group.
  void post(const Bucket& b) {
    Communicator& comm = comms_[b.comm];
    if (!comm.is_alive) return;
    const bool is_lost = troubles_.loses_events && chance(25);
    void* api = book_.api_started(comm.context, false);
    CollStart start;
    start.sequence = comm.sequence++;
    start.function = "AllReduce";
    start.algorithm = b.is_ring ? "RING" : "COLLNET_CHAIN";
    start.datatype = kTypeNames[b.type];
    start.send = pointer(b.buffer);
    start.recv = pointer(b.output);
    start.count = b.count;
    void* handle = is_lost ? nullptr : book_.coll_started(comm.context, api, start);
    if (chance(6)) {
      CollStart other = start;  // another function, numbered on its own
      other.function = "Broadcast";
      other.sequence = pick(9);
      other.algorithm = "RING";
      void* ring = book_.coll_started(comm.context, api, other);
      book_.proxy_op_started(*threads_[comm.thread].queue, comm.context, {ring, 0, 1, 3, 65536});
    }
    if (b.is_ring) {
      book_.proxy_op_started(*threads_[comm.thread].queue, comm.context, {handle, 0, 1, 3, 65536});
      return;
    }
    Collective c = make(b, comm, handle);
    c.number = start.sequence;
    // No event at all shows only by NCCL's numbers, on a thread of one communicator
    // (identity_queue.h).
    if (is_lost && !shares(comm) && chance(2)) c.events.clear();
    // A thread does not know of a communicator that it has heard nothing of.
    const bool is_first = !comm.has_begun;
    comm.has_begun = true;
    if (troubles_.loses_events && chance(25)) {
      if (chance(3) && !is_first && !is_lost) {
        c.events.clear();
      } else {
        const std::size_t kept = is_first || (is_lost && shares(comm)) ? 1 : 0;
        for (std::size_t i = 1 + pick(3); i > 0 && c.events.size() > kept; --i) {
          c.events.erase(c.events.begin() + static_cast<std::ptrdiff_t>(pick(c.events.size())));
        }
      }
    }
    group_.push_back(std::move(c));
    if (!chance(3)) flush_group();
  }

  bool shares(const Communicator& comm) const {
    return std::count_if(comms_.begin(), comms_.end(),
                         [&](const Communicator& c) { return c.thread == comm.thread; }) > 1;
  }

  Collective make(const Bucket& b, const Communicator& comm, void* handle) {
    Collective c;
    c.comm = b.comm;
    c.comm_id = comm.id;
    c.context = comm.context;
    c.buffer = b.buffer;
    c.output = b.output;
    c.count = b.count;
    c.type = b.type;
    c.op = b.op;
    c.channels = b.channels;
    c.is_registered = b.is_registered;
    c.chunk_bytes = b.chunk_bytes;
    c.steps =
        b.is_registered ? 1 : ceil_of(b.count * kTypeBytes[b.type], b.channels * b.chunk_bytes);
    for (std::uint64_t ch = 0; ch < b.channels; ++ch) {
      for (int direction = 0; direction < 2; ++direction) {
        c.events.push_back({handle, static_cast<int>(ch), comm.ranks, static_cast<int>(c.steps),
                            static_cast<int>(c.chunk_bytes)});
      }
    }
    return c;
  }

  void flush_group() {
    for (Collective& c : group_) threads_[comms_[c.comm].thread].posted.push_back(std::move(c));
    group_.clear();
  }

  // A CUDA graph: captured once, then its collectives come whenever it is launched, with events
  // that repeat a number, or with none.
  void capture() {
    const std::size_t i = pick(buckets_.size());
    Communicator& comm = comms_[buckets_[i].comm];
    if (!comm.is_alive || buckets_[i].is_ring) return;
    captured_ = buckets_[i];
    captured_api_ = book_.api_started(comm.context, true);
    is_capturing_ = true;
  }

  void replay() {
    Communicator& comm = comms_[captured_.comm];
    if (!comm.is_alive) return;
    flush_group();
    const bool has_events = chance(2);
    void* handle = nullptr;
    if (has_events) {
      CollStart start;
      start.sequence = comm.sequence;  // which does not advance
      start.function = "AllReduce";
      start.algorithm = "COLLNET_CHAIN";
      start.datatype = kTypeNames[captured_.type];
      start.send = pointer(captured_.buffer);
      start.recv = pointer(captured_.output);
      start.count = captured_.count;
      handle = book_.coll_started(comm.context, captured_api_, start);
    }
    Collective c = make(captured_, comm, handle);
    c.number = ~std::uint64_t{0};
    if (!has_events) c.events.clear();
    threads_[comm.thread].posted.push_back(std::move(c));
  }

  // A communicator breaks off. Alone on its thread it takes the thread along; else what was under
  // way is dropped or still comes.
  void abort_one() {
    const std::size_t which = pick(comms_.size());
    Communicator& comm = comms_[which];
    if (!comm.is_alive) return;
    flush_group();
    Thread& thread = threads_[comm.thread];
    auto is_its = [&](const Collective& c) { return c.comm == which; };
    const bool still_comes = chance(2);
    end(comm);
    const bool is_alone = std::none_of(comms_.begin(), comms_.end(), [&](const Communicator& c) {
      return c.is_alive && c.thread == comm.thread;
    });
    if (is_alone) {
      book_.retire(*thread.queue);
      thread.posted.clear();
      thread.running.clear();
      thread.queue = std::make_unique<CallQueue>();
      book_.end_coll(comm.coll);
      begin_group();
      return;
    }
    if (still_comes) return;
    std::erase_if(thread.posted, is_its);
    std::erase_if(thread.running, is_its);
  }

  void end(Communicator& c) {
    if (c.is_alive) book_.end_communicator(c.context);
    c.is_alive = false;
  }

  void advance(std::uint64_t turns) {
    for (; turns > 0; --turns) progress_.turn(threads_[pick(threads_.size())]);
  }
  void drain() {
    flush_group();
    for (Thread& t : threads_) {
      while (progress_.turn(t)) {
      }
    }
  }

  std::mt19937_64 random_;
  const Troubles troubles_;
  IdentityBook book_;
  int mask_ = 0;
  std::uint64_t next_address_ = std::uint64_t{1} << 40, next_coll_ = 1;
  std::vector<Communicator> comms_;
  Progress progress_{&random_, troubles_, &book_, &comms_, &mask_};
  std::deque<Thread> threads_;
  std::vector<Bucket> buckets_;
  std::vector<Collective> group_;
  Bucket captured_;
  void* captured_api_ = nullptr;
  bool is_capturing_ = false;
};

}  // namespace riffle::identity
