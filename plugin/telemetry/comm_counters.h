// What one communicator counts for its record: operations by size and time, the time in which any
// was running, and the node whose contribution its groups waited for. Plain integers of the
// engine's thread; without a record they do not exist and nothing is counted.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace riffle {

// Times in buckets of half an octave: bucket b holds [bucket_begin_us(b), bucket_begin_us(b + 1)).
inline constexpr int kTimeBuckets = 64;
int time_bucket(std::uint64_t us);
std::uint64_t bucket_begin_us(int bucket);

// Operations of at most 2^k bytes, and more than half of that, are in class k.
inline constexpr int kSizeClasses = 48;
int size_class(std::uint64_t bytes);

class CommCounters {
 public:
  struct SizeClass {
    std::uint64_t count = 0, bytes = 0, total_us = 0, max_us = 0;
    std::array<std::uint32_t, kTimeBuckets> times{};
  };

  explicit CommCounters(int nodes) : late_(static_cast<std::size_t>(nodes), 0) {}

  void began(std::uint64_t now_ns) {
    if (running_++ > 0) return;
    active_since_ns_ = now_ns;
    ++bursts_;
  }
  // An all-reduce of `bytes` bytes is over.
  void ended(std::uint64_t now_ns, std::uint64_t began_ns, std::uint64_t bytes);
  // An operation of another kind is over.
  void ended_other(std::uint64_t now_ns);
  // Nothing runs any more.
  void all_failed(std::uint64_t now_ns);
  // A group had all contributions to one fragment when this node's came.
  void last_was(int node) { ++late_[static_cast<std::size_t>(node)]; }

  const std::array<SizeClass, kSizeClasses>& classes() const { return classes_; }
  std::uint64_t others() const { return others_; }
  // How often anything ran after nothing had.
  std::uint64_t bursts() const { return bursts_; }
  const std::vector<std::uint64_t>& late() const { return late_; }
  std::uint64_t active_us(std::uint64_t now_ns) const;

 private:
  std::array<SizeClass, kSizeClasses> classes_{};
  std::vector<std::uint64_t> late_;  // by node
  std::uint64_t others_ = 0, bursts_ = 0;
  int running_ = 0;
  std::uint64_t active_since_ns_ = 0, active_ns_ = 0;
};

}  // namespace riffle
