// One progress thread's queue of collectives: which one its next iallreduce call belongs to.
//
// A collective enters with its first ProxyOp start; two starts per channel, all before its first
// call. With C channels, chunks of B bytes and S steps it makes exactly S * ceil(C/8) accepted
// calls, in the order (step 0, group 0), (step 0, group 1), ...; call (k, g) covers the elements
// from (k*C + 8g) * B/E on and posts min(8, C - 8g) * B/E of them. On registered user buffers it
// makes calls of exact counts on the job's own pointers instead.
//
// A call must fit in every respect: datatype, operator, count, its place in the staging region
// (slot k mod 8), the coll object that the communicator's other calls came on. The first one that
// does not, or that was not announced, puts the thread in doubt: every call is unsure until rest()
// says that the thread was seen without work. Then nothing announced before can still come.
//
// Communicators that share resources share the thread; their collectives come in the order of
// announcement. Lost events show there too, unless a collective left no event at all (neither Coll
// nor ProxyOp) and another communicator's of the same shape follows: nothing then tells them apart.
//
// Not thread safe: lives on the progress thread. Bounded: at most kMost collectives wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plugin/identity/call_identity.h"
#include "plugin/identity/identity_events.h"

namespace riffle::identity {

struct ProxyOpStart {
  std::uint64_t number = 0;  // the announcement that is its parent
  int channel = 0;
  int steps = 0;
  int chunk_bytes = 0;
};

// What is known of the coll object a call comes on.
struct CollObject {
  std::uintptr_t base = 0;  // the staging region that holds the call's send address; 0: none does
  std::uint64_t bytes = 0;
  int nodes = 0;  // 0: not known
};

class CallQueue {
 public:
  static constexpr std::size_t kMost = 4096;

  // Any event of a communicator on this thread: the thread is its progress thread.
  void meet(const CommEvents& comm, std::uint32_t life);
  void proxy_op(CommEvents& comm, std::uint32_t life, const ProxyOpStart& op);
  // Something of the thread's is lost at this place of its queue.
  void lost(const char* why);

  CallIdentity look(const CallShape& call, const CollObject& object) const;
  CallIdentity take(const CallShape& call, const CollObject& object);

  void doubt(const char* why);  // from now on; the first reason stays
  void rest();                  // the thread has nothing to do
  bool is_in_doubt() const { return doubt_ != nullptr; }
  std::size_t waiting() const { return size_; }

  // identity_book.h's count when the thread last rested; none before it was met.
  std::optional<std::uint64_t> graphs_ended;

 private:
  struct Entry {
    CommEvents* comm = nullptr;
    std::uint32_t life = 0;
    Announced what;
    std::uint64_t once = 0, twice = 0;  // channels, by bit: starts seen
    std::uint64_t steps = 0, chunk_bytes = 0;
    const char* problem = nullptr;
    // Where its calls are.
    std::uint64_t step = 0, group = 0;
    std::uint64_t next_element = 0;  // registered buffers
    bool has_begun = false;
    bool is_registered = false;
    int op = -1;
    std::uint64_t coll = 0;

    std::uint64_t channels() const;
    std::uint64_t groups() const { return (channels() + 7) / 8; }
  };

  // A communicator whose ProxyOps come on this thread.
  struct Member {
    const CommEvents* comm = nullptr;
    std::uint32_t life = 0;
  };

  Entry& at(std::size_t i) { return ring_[(head_ + i) % ring_.size()]; }
  const Entry& at(std::size_t i) const { return ring_[(head_ + i) % ring_.size()]; }
  // Whether another communicator of this thread has waited for its turn longer.
  bool is_out_of_turn(const CommEvents& comm, std::uint64_t stamp) const;
  Entry* push();
  void pop();
  CallIdentity judge(const CallShape& call, const CollObject& object, bool* is_registered) const;
  const char* unfit(const Entry& e) const;

  std::vector<Entry> ring_ = std::vector<Entry>(16);
  std::size_t head_ = 0, size_ = 0;
  const char* doubt_ = nullptr;
  std::vector<Member> members_;
};

}  // namespace riffle::identity
