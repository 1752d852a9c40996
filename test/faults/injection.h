// Faults on demand: the k-th allocation, or the k-th RIFFLE_CHECK, on the threads that count fails.
// Only in programs that link injection.cc, which replaces operator new.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace riffle::faults {

enum class Point { kAllocation, kCheck };

// While it lives, what this thread allocates and checks is counted.
class Counting {
 public:
  Counting();
  ~Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  const bool before_;
};
// From now on, until the thread ends.
void count_on_this_thread();

// Counts points of this kind from 1 on; the `kth` fails, once or with all behind it. 0: none does.
void arm(Point point, std::uint64_t kth, bool lasts = false);
// From now on none fails, and every point's callers are noted.
void survey(Point point);
// After disarm(): of every point, in order, a number that stands for what called it.
const std::vector<std::uint64_t>& surveyed();
// Ends it; says how many there were.
std::uint64_t disarm();
bool has_struck();
// What called the point that failed, for messages (addr2line knows the names).
std::string where();

}  // namespace riffle::faults
