// The CollNet all-reduces that one communicator announced: what its Coll events said, kept until
// its ProxyOp events ask for it.
//
// Coll events come on the application's threads, ProxyOps on the progress thread. On ranks that do
// not talk to the network (the second GPU of a node) no call ever asks, so only the newest
// announcements are kept. Nothing is believed that does not follow on: NCCL numbers the all-reduces
// of a communicator, and ProxyOps come in the order of announcement; where a number is missing or
// an announced collective is passed over, the next one says so.
//
// Thread safe: a lock held for some tens of nanoseconds. Memory: up to kMost announcements.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace riffle::identity {

// A Coll event of any profiler version that names algorithms (v2 on). Strings as NCCL gives them.
struct CollStart {
  std::uint64_t sequence = 0;  // NCCL's number: per function
  const char* function = nullptr;
  const char* algorithm = nullptr;
  const char* datatype = nullptr;
  const void* send = nullptr;
  const void* recv = nullptr;
  std::uint64_t count = 0;
};

struct Announced {
  std::uint64_t number = 0;    // CollNet all-reduces that the communicator announced, from 0
  std::uint64_t sequence = 0;  // NCCL's number: all its all-reduces, the same on all ranks
  const void* send = nullptr;
  const void* recv = nullptr;
  std::uint64_t count = 0;
  int type = -1;                    // NCCL's number
  std::uint64_t element_bytes = 0;  // 0: unknown datatype
  bool is_chain = false;            // its elements lie in the order that we know
  std::uint64_t stamp = 0;          // order of announcement in the process
  const char* problem = nullptr;    // static text: something before it or about it was lost
};

class CommEvents {
 public:
  static constexpr std::size_t kMost = 4096;

  struct About {
    std::uint64_t comm_id = 0;
    int ranks = 0;
    int nodes = 0;
  };

  // A life of this object; objects are used again and never freed while events may come. The life's
  // number differs from that of all others of the object.
  std::uint32_t open(const About& about);
  void close();
  std::uint32_t life() const { return life_.load(std::memory_order_acquire); }  // 0: closed
  const About& about() const { return about_; }  // written by open() only

  // True and its number: a CollNet all-reduce, whose ProxyOps and calls will follow on a head rank.
  // `stamp` orders the announcements of the process.
  bool announce(const CollStart& start, std::uint64_t stamp, std::uint64_t* number);
  // The ProxyOps of announcement `number` begin. Its `problem` tells if it cannot be trusted.
  Announced begin(std::uint64_t number);

  // The stamp of the oldest announcement whose ProxyOps have not begun; the largest number if none.
  std::uint64_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

  // The life that ended last with one waiting, 0 if none did.
  std::uint32_t ended_waiting() const { return ended_waiting_.load(std::memory_order_relaxed); }

  // The coll object that the communicator's calls came on, 0 before the first.
  std::atomic<std::uint64_t> coll{0};

 private:
  void note_waiting();
  Announced& at(std::uint64_t number) { return ring_[number % ring_.size()]; }

  About about_;
  std::atomic<std::uint32_t> life_{0};
  std::atomic<std::uint64_t> waiting_{~std::uint64_t{0}};
  std::atomic<std::uint32_t> ended_waiting_{0};
  std::uint32_t lives_ = 0;
  std::mutex mutex_;
  std::vector<Announced> ring_;          // by number; grows to kMost
  std::uint64_t next_number_ = 0;        // announced
  std::uint64_t next_begin_ = 0;         // whose ProxyOps began: all before
  std::uint64_t expected_sequence_ = 0;  // NCCL's, of all-reduces
  bool has_gap_ = false;                 // before the next announcement
};

}  // namespace riffle::identity
