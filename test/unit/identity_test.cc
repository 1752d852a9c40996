// plugin/policy/identity_book.h against a small model of NCCL's host side that makes random jobs:
// whatever it announces, loses or breaks off, an answer is right or not sure.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "plugin/policy/identity_book.h"
#include "test/sanitized.h"

namespace riffle::identity {
namespace {

constexpr std::uint64_t kSlotBytes = 512 << 10;  // of a channel, in one of the 8 slots
constexpr const char* kTypeNames[] = {"ncclInt8", "ncclInt32", "ncclFloat16", "ncclFloat32",
                                      "ncclFloat64"};
constexpr int kTypeNumbers[] = {0, 2, 6, 7, 8};
constexpr std::uint64_t kTypeBytes[] = {1, 4, 2, 4, 8};

std::uint64_t ceil_of(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }
const void* pointer(std::uint64_t a) { return reinterpret_cast<const void*>(a); }

// What may happen in a job besides its collectives.
struct Troubles {
  bool loses_events = false;
  bool captures_graphs = false;
  bool aborts = false;
};

struct Collective {
  std::size_t comm = 0;
  std::uint64_t comm_id = 0, number = 0, buffer = 0, output = 0, count = 0, chunk_bytes = 0,
                steps = 0;
  std::uint64_t channels = 1;
  int type = 0;  // index of kTypeNames
  int op = 0;
  bool is_registered = false;
  // The ProxyOp starts that the profiler is told of.
  std::vector<ProxyOp> events;
  void* context = nullptr;
  // Where its calls are.
  std::uint64_t step = 0, group = 0, element = 0;
};

struct Communicator {
  void* context = nullptr;
  std::uint64_t id = 0, coll = 0, region = 0, channels = 1, sequence = 0;
  std::size_t thread = 0;
  int nodes = 2, ranks = 2;
  bool is_alive = true;
  bool has_begun = false;
};

struct Thread {
  std::unique_ptr<CallQueue> queue = std::make_unique<CallQueue>();
  std::deque<Collective> posted, running;
};

struct Tally {
  std::uint64_t sure = 0, unsure = 0, wrong = 0, zero_valid = 0, registered = 0, looked = 0;
};

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
    return tally_;
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
    for (; turns > 0; --turns) turn(threads_[pick(threads_.size())]);
  }
  void drain() {
    flush_group();
    for (Thread& t : threads_) {
      while (turn(t)) {
      }
    }
  }

  // The progress thread takes what was posted, makes a call, or sleeps.
  bool turn(Thread& t) {
    if (t.running.empty() && t.posted.empty()) {
      if ((mask_ & 32) != 0) book_.slept(*t.queue);
      return false;
    }
    if (t.running.empty() || (!t.posted.empty() && chance(3))) {
      const std::size_t n = std::min<std::size_t>(t.posted.size(), 1 + pick(4));
      std::size_t most = 0;
      for (std::size_t i = 0; i < n; ++i) most = std::max(most, t.posted[i].events.size());
      // One collective after the other, or channel by channel as in a group.
      if (chance(4)) {
        for (std::size_t e = 0; e < most; ++e) {
          for (std::size_t i = 0; i < n; ++i) {
            if (e < t.posted[i].events.size()) tell(t, t.posted[i], e);
          }
        }
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          for (std::size_t e = 0; e < t.posted[i].events.size(); ++e) tell(t, t.posted[i], e);
        }
      }
      for (std::size_t i = 0; i < n; ++i) {
        t.running.push_back(std::move(t.posted.front()));
        t.posted.pop_front();
      }
      return true;
    }
    call(t);
    return true;
  }

  void tell(Thread& t, const Collective& c, std::size_t event) {
    book_.proxy_op_started(*t.queue, c.context, c.events[event]);
  }

  void call(Thread& t) {
    Collective& c = t.running.front();
    const Communicator& comm = comms_[c.comm];
    const std::uint64_t element = kTypeBytes[c.type];
    CallShape shape;
    shape.coll = comm.coll;
    shape.type = kTypeNumbers[c.type];
    shape.op = c.op;
    CallIdentity truth;
    bool is_last;
    if (c.is_registered) {
      const std::uint64_t left = c.count - c.element;
      shape.count = std::min<std::uint64_t>(left, 1 + c.count / 3);
      shape.send = pointer(c.buffer + c.element * element);
      shape.recv = pointer(c.output + c.element * element);
      truth.first_element = c.element;
      truth.valid_elements = shape.count;
      c.element += shape.count;
      is_last = c.element == c.count;
      ++tally_.registered;
    } else {
      const std::uint64_t chunk = c.chunk_bytes / element;
      shape.count = std::min<std::uint64_t>(8, c.channels - 8 * c.group) * chunk;
      const std::uint64_t offset =
          c.step % 8 * comm.channels * kSlotBytes + 8 * c.group * c.chunk_bytes;
      shape.send = pointer(comm.region + offset);
      shape.recv = pointer(comm.region + offset + 8 * comm.channels * kSlotBytes);
      truth.first_element = (c.step * c.channels + 8 * c.group) * chunk;
      truth.valid_elements =
          std::min(shape.count, c.count - std::min(c.count, truth.first_element));
      if (++c.group == ceil_of(c.channels, 8)) {
        c.group = 0;
        ++c.step;
      }
      is_last = c.step == c.steps;
    }
    if (chance(8)) {
      // Refused and offered again.
      const CallIdentity looked = book_.look(*t.queue, shape);
      if (looked.is_sure) check(looked, truth, c, is_last);
      ++tally_.looked;
    }
    const CallIdentity identity = book_.identify(*t.queue, shape);
    if (identity.is_sure) {
      ++tally_.sure;
      tally_.zero_valid += truth.valid_elements == 0 ? 1 : 0;
      check(identity, truth, c, is_last);
    } else {
      ++tally_.unsure;
      EXPECT_STRNE(identity.why_not, "");
    }
    if (is_last) t.running.pop_front();
  }

  void check(const CallIdentity& said, const CallIdentity& truth, const Collective& c,
             bool is_last) {
    const bool is_right =
        said.comm_id == c.comm_id && said.bucket == c.number && said.buffer == pointer(c.buffer) &&
        said.output == pointer(c.output) && said.first_element == truth.first_element &&
        said.valid_elements == truth.valid_elements && said.total_elements == c.count &&
        (troubles_.loses_events || said.is_last == is_last);
    tally_.wrong += is_right ? 0 : 1;
  }

  std::mt19937_64 random_;
  const Troubles troubles_;
  IdentityBook book_;
  int mask_ = 0;
  std::uint64_t next_address_ = std::uint64_t{1} << 40, next_coll_ = 1;
  std::vector<Communicator> comms_;
  std::deque<Thread> threads_;
  std::vector<Bucket> buckets_;
  std::vector<Collective> group_;
  Bucket captured_;
  void* captured_api_ = nullptr;
  bool is_capturing_ = false;
  Tally tally_;
};

Tally run_many(std::uint64_t first_seed, std::uint64_t jobs, const Troubles& troubles) {
  Tally all;
  if (kIsSanitized) jobs /= 3;
  for (std::uint64_t seed = first_seed; seed < first_seed + jobs; ++seed) {
    const Tally one = World(seed, troubles).run();
    all.sure += one.sure;
    all.unsure += one.unsure;
    all.wrong += one.wrong;
    all.zero_valid += one.zero_valid;
    all.registered += one.registered;
    if (one.wrong != 0) {
      ADD_FAILURE() << "seed " << seed << ": " << one.wrong << " wrong";
      if (all.wrong > 20) break;
    }
  }
  std::cout << all.sure << " sure, " << all.unsure << " not, " << all.zero_valid
            << " without a valid element, " << all.registered << " on registered buffers\n";
  return all;
}

double share(const Tally& t) {
  return static_cast<double>(t.sure) / static_cast<double>(t.sure + t.unsure);
}

// 10^5 jobs in all.
TEST(Identity, IsSureWhereNothingIsLost) {
  const Tally t = run_many(1, 40000, {});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_EQ(t.unsure, 0U);
  EXPECT_GT(t.zero_valid, 1000U);
  EXPECT_GT(t.registered, 1000U);
}
TEST(Identity, IsNeverWrongWhereEventsAreLost) {
  const Tally t = run_many(1000001, 25000, {true, false, false});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.5);
}
TEST(Identity, IsNeverWrongWithGraphs) {
  const Tally t = run_many(2000001, 10000, {false, true, false});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.5);
}
TEST(Identity, IsNeverWrongWithAbortedCommunicators) {
  const Tally t = run_many(3000001, 15000, {false, false, true});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.8);
}
TEST(Identity, IsNeverWrongWithEverythingAtOnce) {
  const Tally t = run_many(4000001, 10000, {true, true, true});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.3);
}

}  // namespace
}  // namespace riffle::identity
