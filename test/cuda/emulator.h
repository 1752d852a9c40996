// Enough of a GPU to run kernels on the processor: the threads of a block as fibers, one at a time,
// that take turns where they wait for one another. Blocks run one after the other.
//
// Threads and blocks run in an order that the seed chooses (ascending, descending, or mixed), so
// that a barrier that is missing, or a block that relies on an earlier one, gives a wrong result
// sooner or later. One emulation at a time in a process.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>

namespace riffle::emulator {

// Threads that wait for one another forever: a barrier or a shuffle that not all reach.
class Deadlock : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct Dimension {
  unsigned x;
};

// Of the thread that runs.
const Dimension& thread_index();
const Dimension& block_index();
const Dimension& grid_dimension();

void wait_for_block();
// What the 32 threads of the warp have given; valid until this thread calls again.
const std::uint32_t* exchange_in_warp(std::uint32_t own);

// Runs `kernel` once for each of blocks * threads threads; `threads` is a multiple of 32.
// [shared, shared_end) is the memory that a block's threads share: filled with garbage before each
// block.
void run(unsigned blocks, unsigned threads, std::uint64_t seed, char* shared, char* shared_end,
         const std::function<void()>& kernel);

}  // namespace riffle::emulator
