// Round to nearest, subnormal numbers kept, no traps: for the life of this object, in this thread.
//
// Threads inherit these modes from the thread that created them, and frameworks change them
// (flushing subnormals is a common switch); without this, two nodes could disagree about the same
// sum.
#pragma once

#if defined(__SSE2__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace riffle {

#if defined(__SSE2__)
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~DefaultFloatEnvironment() { _mm_setcsr(before_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  static constexpr unsigned kDefault = 0x1f80;
  unsigned before_;
};
#else
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&before_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t before_;
};
#endif

}  // namespace riffle
