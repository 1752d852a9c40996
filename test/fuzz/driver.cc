// Runs a target on random mutations of its seeds. Case i depends on seed + i alone, so that any
// failure is reproduced by the one line that is printed with it, a crash included.
//
//   RIFFLE_TEST_FUZZ_SEED=1 RIFFLE_TEST_FUZZ_CASES=20000 build/test/fuzz/fuzz_knobs
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>

#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

using Random = std::mt19937_64;

char reproduction[256];

void describe(std::uint64_t seed, const char* program) {
  std::snprintf(reproduction, sizeof reproduction,
                "reproduce: RIFFLE_TEST_FUZZ_SEED=%llu RIFFLE_TEST_FUZZ_CASES=1 %s\n",
                static_cast<unsigned long long>(seed), program);
}

void on_crash(int signal) {
  [[maybe_unused]] const auto n = write(STDERR_FILENO, reproduction, std::strlen(reproduction));
  ::signal(signal, SIG_DFL);
  raise(signal);
}

std::size_t below(Random& random, std::size_t limit) { return limit == 0 ? 0 : random() % limit; }

void mutate(Bytes& bytes, Random& random) {
  const std::size_t at = below(random, bytes.size());
  switch (random() % 7) {
    case 0:  // one bit
      if (!bytes.empty()) bytes[at] ^= static_cast<std::uint8_t>(1U << (random() % 8));
      break;
    case 1:  // one byte
      if (!bytes.empty()) bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 2:  // truncated
      bytes.resize(at);
      break;
    case 3:  // a byte more
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                   static_cast<std::uint8_t>(random()));
      break;
    case 4: {  // a piece twice
      const Bytes piece(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end());
      bytes.insert(bytes.end(), piece.begin(),
                   piece.begin() + static_cast<std::ptrdiff_t>(below(random, piece.size())));
      break;
    }
    case 5: {  // a number at the edge of its type
      constexpr std::int64_t kEdges[] = {0, -1, 1, 0x7f, 0x7fff, 0x7fffffff, INT64_MAX, INT64_MIN};
      const std::int64_t edge = kEdges[random() % std::size(kEdges)];
      const std::size_t width = std::size_t{1} << (random() % 4);
      if (at + width <= bytes.size()) std::memcpy(&bytes[at], &edge, width);
      break;
    }
    default: {  // a byte less
      if (!bytes.empty()) bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    }
  }
}

Bytes input_of(std::uint64_t seed, const std::vector<Bytes>& seeds) {
  Random random(seed);
  Bytes bytes = seeds[below(random, seeds.size())];
  for (std::size_t n = below(random, 8); n > 0; --n) mutate(bytes, random);
  return bytes;
}

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

int run(const char* program) {
  const std::uint64_t first = number_from("RIFFLE_TEST_FUZZ_SEED", 1);
  const std::uint64_t cases = number_from("RIFFLE_TEST_FUZZ_CASES", 20000);
  for (const int crash : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) signal(crash, on_crash);
  const std::vector<Bytes> from = seeds();
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    describe(seed, program);
    const Bytes input = input_of(seed, from);
    try {
      try_input(input);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n%s", error.what(), reproduction);
      return 1;
    }
  }
  std::printf("%llu cases from seed %llu\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(first));
  return 0;
}

}  // namespace
}  // namespace riffle::fuzz

int main(int, char** argv) { return riffle::fuzz::run(argv[0]); }
