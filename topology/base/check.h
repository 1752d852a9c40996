// RIFFLE_CHECK: an assertion that stays in release builds. It throws InvariantBroken, which the C
// border (plugin/entry) and the reactor thread turn into an error of the one communicator
// concerned: a bug of ours must not abort a training job.
//
// Where RIFFLE_FAULT_POINTS is defined (presets test, asan and tsan, never in what is installed) a
// test can break any check: `break_check` is asked at every one (test/faults/injection.h).
#pragma once

#include <stdexcept>
#include <string>

namespace riffle {

class InvariantBroken : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void invariant_broken(const char* file, int line, const char* expression,
                                          const std::string& why) {
  throw InvariantBroken(std::string(file) + ":" + std::to_string(line) + ": " + expression + ": " +
                        why);
}

#ifdef RIFFLE_FAULT_POINTS
using BreakCheck = bool (*)() noexcept;
inline constinit BreakCheck break_check = nullptr;  // set before any other thread starts
inline bool is_check_broken() { return break_check != nullptr && break_check(); }
#else
constexpr bool is_check_broken() { return false; }
#endif

}  // namespace riffle

#define RIFFLE_CHECK(condition, why)                                     \
  do {                                                                   \
    if (!(condition) || ::riffle::is_check_broken()) [[unlikely]] {      \
      ::riffle::invariant_broken(__FILE__, __LINE__, #condition, (why)); \
    }                                                                    \
  } while (false)
