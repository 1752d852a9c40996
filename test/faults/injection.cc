#include "test/faults/injection.h"

#include <execinfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

#include "topology/base/check.h"

namespace riffle::faults {
namespace {

thread_local bool counts = false;

std::atomic<bool> is_armed{false};
std::atomic<Point> armed_point{Point::kAllocation};
std::atomic<std::uint64_t> armed_kth{0}, counted{0};
std::atomic<bool> lasts{false}, struck{false};
std::array<void*, 24> frames;
std::atomic<int> frame_count{0};

std::atomic<bool> is_survey{false};
std::mutex survey_mutex;
std::vector<std::uint64_t> callers;  // guarded by survey_mutex

// What follows is no part of the program under test.
class Aside {
 public:
  Aside() { counts = false; }
  ~Aside() { counts = true; }
};

void note_callers() {
  const Aside aside;
  std::array<void*, 24> stack;
  const int depth = ::backtrace(stack.data(), static_cast<int>(stack.size()));
  std::uint64_t hash = 0;
  for (int i = 0; i < depth; ++i) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(stack[static_cast<std::size_t>(i)])) *
           0x9e3779b97f4a7c15ull;
  }
  const std::lock_guard lock(survey_mutex);
  callers.push_back(hash);
}

void note_strike() {
  const Aside aside;
  frame_count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  struck.store(true, std::memory_order_release);
}

bool strikes(Point point) noexcept {
  if (!counts || !is_armed.load(std::memory_order_acquire)) return false;
  if (armed_point.load(std::memory_order_relaxed) != point) return false;
  const std::uint64_t number = counted.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t kth = armed_kth;
  if (is_survey) note_callers();
  if (number == kth) note_strike();
  return number == kth || (lasts && kth > 0 && number > kth);
}

#ifdef RIFFLE_FAULT_POINTS
bool check_strikes() noexcept { return strikes(Point::kCheck); }
const bool is_hooked = (break_check = check_strikes, true);
#endif
const bool is_ready = (::backtrace(frames.data(), 1), true);  // its first call loads a library

void* allocate(std::size_t size, std::size_t alignment) {
  void* const memory =
      strikes(Point::kAllocation) ? nullptr
      : alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

Counting::Counting() : before_(std::exchange(counts, true)) {}
Counting::~Counting() { counts = before_; }
void count_on_this_thread() { counts = true; }

void arm(Point point, std::uint64_t kth, bool all_behind) {
  lasts = all_behind;
  counted = 0;
  struck = false;
  armed_point = point;
  armed_kth = kth;
  is_armed.store(true, std::memory_order_release);
}

void survey(Point point) {
  callers.clear();
  is_survey = true;
  arm(point, 0);
}

const std::vector<std::uint64_t>& surveyed() { return callers; }

std::uint64_t disarm() {
  is_armed = is_survey = false;
  return counted;
}

bool has_struck() { return struck.load(std::memory_order_acquire); }

std::string where() {
  std::string text;
  if (!has_struck()) return text;
  char** const names = ::backtrace_symbols(frames.data(), frame_count);
  for (int i = 0; names != nullptr && i < frame_count; ++i) text += std::string(names[i]) + "\n";
  std::free(names);
  return text;
}

}  // namespace riffle::faults

void* operator new(std::size_t size) { return riffle::faults::allocate(size, 1); }
void* operator new[](std::size_t size) { return riffle::faults::allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return riffle::faults::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return riffle::faults::allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
