// Copies of inputs in a bounded piece of memory: never overlapping, refused when there is no room,
// all of it free again in the end.
#include "plugin/collective/engine/kept_inputs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>
#include <vector>

namespace riffle::kept_inputs_test {
namespace {

TEST(KeptInputs, RandomUse) {
  constexpr std::size_t kBytes = 10'000;
  auto made = KeptInputs::make(kBytes);
  ASSERT_TRUE(made);
  KeptInputs& kept = **made;
  struct Held {
    std::byte* copy;
    std::vector<unsigned char> bytes;
  };
  std::deque<Held> held;
  std::mt19937_64 random(1);
  int refused = 0, taken = 0, wrapped = 0;
  std::byte* lowest = nullptr;
  for (int step = 0; step < 100'000; ++step) {
    if (random() % 2 == 0) {
      std::vector<unsigned char> bytes(1 + random() % (random() % 4 == 0 ? kBytes : 600));
      for (auto& b : bytes) b = static_cast<unsigned char>(random());
      std::byte* copy = kept.keep(bytes.data(), bytes.size());
      if (copy == nullptr) {
        ++refused;
        EXPECT_FALSE(held.empty());  // alone, everything up to the capacity fits
      } else {
        ++taken;
        if (lowest == nullptr) lowest = copy;
        wrapped += !held.empty() && copy == lowest;
        EXPECT_LE(copy + bytes.size(), lowest + kBytes);
        held.push_back({copy, std::move(bytes)});
      }
    } else if (!held.empty()) {
      const std::size_t i = random() % std::min<std::size_t>(held.size(), 3);
      EXPECT_EQ(std::memcmp(held[i].copy, held[i].bytes.data(), held[i].bytes.size()), 0);
      kept.give_back(held[i].copy);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 1000);
  EXPECT_GT(wrapped, 100);
  for (const Held& h : held) kept.give_back(h.copy);
  std::vector<unsigned char> all(kBytes);
  EXPECT_NE(kept.keep(all.data(), kBytes), nullptr);
  EXPECT_EQ(kept.keep(all.data(), 1), nullptr);
}

TEST(KeptInputs, SixtyFourAtMost) {
  auto made = KeptInputs::make(1 << 20);
  ASSERT_TRUE(made);
  const char byte = 1;
  std::byte* first = nullptr;
  for (std::size_t i = 0; i < KeptInputs::kMost; ++i) {
    std::byte* copy = (*made)->keep(&byte, 1);
    ASSERT_NE(copy, nullptr);
    if (first == nullptr) first = copy;
  }
  EXPECT_EQ((*made)->keep(&byte, 1), nullptr);
  (*made)->give_back(first);
  EXPECT_NE((*made)->keep(&byte, 1), nullptr);
}

}  // namespace
}  // namespace riffle::kept_inputs_test
