// What the strict plugin does wrong at random, where STRICT_NET_SEED asks for it: few calls are
// hit, the same ones for the same seed and order of calls.
#pragma once

#include <cstdint>

namespace strict {

enum class Lie {
  kNone,
  kError,     // the call fails
  kBusy,      // isend, irecv: no request, though there would be one
  kNotYet,    // test: not done, though it is
  kTooLong,   // test of a receive: more bytes than came
  kTooShort,  // ... fewer
  kNegative,  // ... less than none
  kTooEarly,  // ... done before anything came
};

// Of one call of isend, irecv or test; `is_receive`: of a receive.
Lie next_lie(bool is_test, bool is_receive);

void seed_lies(int seed);

}  // namespace strict
