// Runs a target on its kept corpus (test/fuzz/corpus) and on random mutations of seeds and corpus.
// Case i depends on seed + i alone, so that any failure is reproduced by the one line that is
// printed with it, a crash included.
//
//   RIFFLE_TEST_FUZZ_SEED=1 RIFFLE_TEST_FUZZ_CASES=20000 build/test/fuzz/fuzz_knobs
//   build/test/fuzz/fuzz_knobs FILE...     runs those inputs only
//   build/test/fuzz/fuzz_knobs --seeds DIR   writes the seeds there, for libFuzzer
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
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

Bytes contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The kept inputs, in the folder with the program's name, in the order of their names, so that
// cases do not depend on the file system.
std::vector<std::filesystem::path> corpus(const char* program) {
  std::vector<std::filesystem::path> files;
  const auto folder = RIFFLE_FUZZ_CORPUS / std::filesystem::path(program).filename();
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

int run_files(const char* program, const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files) {
    std::snprintf(reproduction, sizeof reproduction, "reproduce: %s %s\n", program, file.c_str());
    try {
      try_input(contents(file));
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n%s", error.what(), reproduction);
      return 1;
    }
  }
  return 0;
}

int write_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const Bytes& seed : seeds()) {
    std::ofstream out(folder / ("seed" + std::to_string(number++)), std::ios::binary);
    out.write(reinterpret_cast<const char*>(seed.data()),
              static_cast<std::streamsize>(seed.size()));
  }
  return 0;
}

int run(const char* program) {
  const std::uint64_t first = number_from("RIFFLE_TEST_FUZZ_SEED", 1);
  const std::uint64_t cases = number_from("RIFFLE_TEST_FUZZ_CASES", 20000);
  const auto kept = corpus(program);
  if (const int failed = run_files(program, kept)) return failed;
  std::vector<Bytes> from = seeds();
  for (const auto& file : kept) from.push_back(contents(file));
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
  std::printf("%zu kept inputs, %llu cases from seed %llu\n", kept.size(),
              static_cast<unsigned long long>(cases), static_cast<unsigned long long>(first));
  return 0;
}

}  // namespace
}  // namespace riffle::fuzz

int main(int count, char** arguments) {
  using namespace riffle::fuzz;
  for (const int crash : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) signal(crash, on_crash);
  if (count == 1) return run(arguments[0]);
  if (count == 3 && std::string(arguments[1]) == "--seeds") return write_seeds(arguments[2]);
  return run_files(arguments[0], {arguments + 1, arguments + count});
}
