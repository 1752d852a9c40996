// The controller of what teams offer (h_controller.h): whatever unions it is told, its offer stays
// within its limits, partners stay equal, and it finds its way back from wherever it was led.
#include <algorithm>
#include <cstring>

#include "sparse/h_controller.h"
#include "test/fuzz/target.h"

namespace riffle::fuzz {
namespace {

using sparse::HController;

// Bytes of the input from the front; zeros behind its end.
std::uint64_t take(std::span<const std::uint8_t>* input, std::size_t bytes) {
  std::uint64_t number = 0;
  const std::size_t n = std::min(bytes, input->size());
  std::memcpy(&number, input->data(), n);
  *input = input->subspan(n);
  return number;
}

Bytes seed_of(std::uint64_t budget, std::uint64_t teams, const std::vector<std::uint32_t>& unions) {
  Bytes bytes(7 + 4 * unions.size());
  std::memcpy(bytes.data(), &budget, 5);
  std::memcpy(bytes.data() + 5, &teams, 2);
  if (!unions.empty()) std::memcpy(bytes.data() + 7, unions.data(), 4 * unions.size());
  return bytes;
}

}  // namespace

std::vector<Bytes> seeds() {
  return {seed_of(1000, 4, {900, 1100, 1100, 980, 1000, 1001}), seed_of(1, 8, {1, 2, 0}),
          seed_of(0, 2, {0, 5}), seed_of(7, 1, {7, 7, 9, 3}),
          seed_of(1ull << 39, 16, {0, 0, 0, 0xffffffff, 0, 0xffffffff})};
}

// 5 bytes of budget, 2 of teams, then a union of 4 bytes per call.
void try_input(std::span<const std::uint8_t> input) {
  const std::uint64_t budget = take(&input, 5);
  const int teams = static_cast<int>(1 + take(&input, 2));
  const std::uint64_t least =
      std::min(budget, std::max<std::uint64_t>(1, budget / static_cast<std::uint64_t>(teams)));
  HController one(budget, teams), partner(budget, teams);
  const auto observe = [&](std::uint64_t union_size) {
    one.observe(union_size);
    partner.observe(union_size);
    require(one.entries() >= least && one.entries() <= budget, "offers beyond its limits");
    require(one.entries() == partner.entries(), "partners differ");
  };
  require(one.entries() == least, "begins elsewhere");
  while (!input.empty()) observe(take(&input, 4));
  constexpr int kEnough = 200;  // the step doubles in every second call
  for (int i = 0; i < kEnough; ++i) observe(0);
  require(one.entries() == budget, "does not grow to its budget");
  for (int i = 0; i < kEnough; ++i) observe(budget + 1);
  require(one.entries() == least, "does not shrink to its least offer");
}

}  // namespace riffle::fuzz
