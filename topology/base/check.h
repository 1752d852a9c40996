// RIFFLE_CHECK: an assertion that stays in release builds. It throws InvariantBroken, which the C
// border (plugin/entry) and the reactor thread turn into an error of the one communicator
// concerned: a bug of ours must not abort a training job.
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

}  // namespace riffle

#define RIFFLE_CHECK(condition, why)                                     \
  do {                                                                   \
    if (!(condition)) [[unlikely]] {                                     \
      ::riffle::invariant_broken(__FILE__, __LINE__, #condition, (why)); \
    }                                                                    \
  } while (false)
