// plugin/identity/identity_book.h against a small model of NCCL's host side that makes random jobs
// (identity_world.h): whatever it announces, loses or breaks off, an answer is right or not sure.
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>

#include "test/plugin/identity/identity_world.h"
#include "test/sanitized.h"

namespace riffle::identity::identity_test {
namespace {

Tally run_many(std::uint64_t first_seed, std::uint64_t jobs, const Troubles& troubles) {
  Tally all;
  if (kIsSanitized) jobs /= 3;
  for (std::uint64_t seed = first_seed; seed < first_seed + jobs; ++seed) {
    const Tally one = World(seed, troubles).run();
    all.sure += one.sure;
    all.unsure += one.unsure;
    all.wrong += one.wrong;
    all.zero_valid += one.zero_valid;
    all.registered += one.registered;
    if (one.wrong != 0) {
      ADD_FAILURE() << "seed " << seed << ": " << one.wrong << " wrong";
      if (all.wrong > 20) break;
    }
  }
  std::cout << all.sure << " sure, " << all.unsure << " not, " << all.zero_valid
            << " without a valid element, " << all.registered << " on registered buffers\n";
  return all;
}

double share(const Tally& t) {
  return static_cast<double>(t.sure) / static_cast<double>(t.sure + t.unsure);
}

// 10^5 jobs in all.
TEST(Identity, IsSureWhereNothingIsLost) {
  const Tally t = run_many(1, 40000, {});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_EQ(t.unsure, 0U);
  EXPECT_GT(t.zero_valid, 1000U);
  EXPECT_GT(t.registered, 1000U);
}
TEST(Identity, IsNeverWrongWhereEventsAreLost) {
  const Tally t = run_many(1000001, 25000, {true, false, false});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.5);
}
TEST(Identity, IsNeverWrongWithGraphs) {
  const Tally t = run_many(2000001, 10000, {false, true, false});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.5);
}
TEST(Identity, IsNeverWrongWithAbortedCommunicators) {
  const Tally t = run_many(3000001, 15000, {false, false, true});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.8);
}
TEST(Identity, IsNeverWrongWithEverythingAtOnce) {
  const Tally t = run_many(4000001, 10000, {true, true, true});
  EXPECT_EQ(t.wrong, 0U);
  EXPECT_GT(share(t), 0.3);
}

}  // namespace
}  // namespace riffle::identity::identity_test
