#include "plugin/telemetry/comm_counters.h"

#include <algorithm>
#include <bit>

namespace riffle {

// 0, 1, then two buckets per octave: 2, 3, 4, 6, 8, 12, ...
int time_bucket(std::uint64_t us) {
  if (us < 2) return static_cast<int>(us);
  const int octave = std::bit_width(us) - 1;
  const int upper = static_cast<int>(us >> (octave - 1)) & 1;
  return std::min(2 * octave + upper, kTimeBuckets - 1);
}

std::uint64_t bucket_begin_us(int bucket) {
  if (bucket < 2) return static_cast<std::uint64_t>(bucket);
  return static_cast<std::uint64_t>(2 + bucket % 2) << (bucket / 2 - 1);
}

int size_class(std::uint64_t bytes) {
  return bytes <= 1 ? 0 : std::min(static_cast<int>(std::bit_width(bytes - 1)), kSizeClasses - 1);
}

void CommCounters::ended(std::uint64_t now_ns, std::uint64_t began_ns, std::uint64_t bytes) {
  SizeClass& c = classes_[static_cast<std::size_t>(size_class(bytes))];
  const std::uint64_t us = now_ns > began_ns ? (now_ns - began_ns) / 1000 : 0;
  ++c.count;
  c.bytes += bytes;
  c.total_us += us;
  c.max_us = std::max(c.max_us, us);
  ++c.times[static_cast<std::size_t>(time_bucket(us))];
  if (--running_ == 0) active_ns_ += now_ns - active_since_ns_;
}

void CommCounters::ended_other(std::uint64_t now_ns) {
  ++others_;
  if (--running_ == 0) active_ns_ += now_ns - active_since_ns_;
}

void CommCounters::all_failed(std::uint64_t now_ns) {
  if (running_ > 0) active_ns_ += now_ns - active_since_ns_;
  running_ = 0;
}

std::uint64_t CommCounters::active_us(std::uint64_t now_ns) const {
  return (active_ns_ + (running_ > 0 ? now_ns - active_since_ns_ : 0)) / 1000;
}

}  // namespace riffle
