// The emulator itself: it must behave as a GPU's blocks do, and see what only looks right.
#include "test/cuda/emulator.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "test/cuda/emulated_kernels.h"

namespace riffle::emulator::emulator_test {
namespace {

char nothing_shared[1];

void run_here(unsigned blocks, unsigned threads, std::uint64_t seed,
              const std::function<void()>& kernel) {
  run(blocks, threads, seed, nothing_shared, nothing_shared, kernel);
}

TEST(CudaEmulator, EveryThreadOfEveryBlockRunsOnce) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::vector<int> runs(3 * 64);
    run_here(3, 64, seed, [&] {
      EXPECT_EQ(grid_dimension().x, 3U);
      ++runs[block_index().x * 64 + thread_index().x];
    });
    EXPECT_EQ(runs, std::vector<int>(3 * 64, 1));
  }
}

TEST(CudaEmulator, SeedsChooseOtherOrders) {
  std::set<std::vector<unsigned>> orders;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<unsigned> order;
    run_here(2, 32, seed, [&] { order.push_back(block_index().x * 32 + thread_index().x); });
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 4U);
}

TEST(CudaEmulator, ABarrierHoldsAllUntilTheLastHasCome) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    unsigned arrived = 0;
    run_here(1, 96, seed, [&] {
      for (unsigned round = 1; round <= 5; ++round) {
        ++arrived;
        wait_for_block();
        EXPECT_EQ(arrived, 96 * round);
        wait_for_block();
      }
    });
  }
}

TEST(CudaEmulator, AWarpSeesWhatItsLanesGiveThisTime) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    run_here(2, 64, seed, [&] {
      const unsigned thread = thread_index().x;
      for (unsigned round = 0; round < 7; ++round) {
        const std::uint32_t* const lanes = exchange_in_warp(round * 1000 + thread);
        for (unsigned lane = 0; lane < 32; ++lane) {
          EXPECT_EQ(lanes[lane], round * 1000 + thread / 32 * 32 + lane);
        }
      }
    });
  }
}

TEST(CudaEmulator, WaitingForeverIsAnErrorAndTheNextRunIsSound) {
  EXPECT_THROW(run_here(1, 64, 1,
                        [] {
                          if (thread_index().x != 5) wait_for_block();
                        }),
               Deadlock);
  EXPECT_THROW(run_here(1, 64, 1,
                        [] {
                          if (thread_index().x != 5) exchange_in_warp(1);
                        }),
               Deadlock);
  unsigned runs = 0;
  run_here(1, 64, 1, [&] {
    wait_for_block();
    ++runs;
  });
  EXPECT_EQ(runs, 64U);
}

TEST(CudaEmulator, SharedMemoryIsGarbageWhenABlockBegins) {
  char shared[64] = {};
  std::set<char> seen;
  run(8, 32, 3, shared, shared + sizeof shared, [&] { seen.insert(shared[thread_index().x]); });
  EXPECT_GT(seen.size(), 1U);
}

}  // namespace
}  // namespace riffle::emulator::emulator_test
