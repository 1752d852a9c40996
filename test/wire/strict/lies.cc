#include "test/wire/strict/lies.h"

#include <random>

namespace strict {
namespace {

struct State {
  bool is_on = false;
  std::mt19937 random;
};

State& state() {
  static State& one = *new State;
  return one;
}

}  // namespace

void seed_lies(int seed) {
  state().is_on = seed != 0;
  state().random.seed(static_cast<unsigned>(seed));
}

// Harmless ones often, as there is nothing to see of a run that ends with its first call.
Lie next_lie(bool is_test, bool is_receive) {
  State& s = state();
  if (!s.is_on) return Lie::kNone;
  const auto r = static_cast<unsigned>(s.random() % 100'000);
  if (r < 20'000) return is_test ? Lie::kNotYet : Lie::kBusy;
  if (r < 20'004) return Lie::kError;
  if (!is_test || !is_receive || r >= 20'020) return Lie::kNone;
  constexpr Lie kLies[] = {Lie::kTooLong, Lie::kTooShort, Lie::kNegative, Lie::kTooEarly};
  return kLies[r % 4];
}

}  // namespace strict
