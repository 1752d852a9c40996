#undef _FORTIFY_SOURCE  // its longjmp refuses to change stacks
#include "test/cuda/emulator.h"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace riffle::emulator {
namespace {

constexpr std::size_t kStackBytes = 64 << 10;
constexpr unsigned kLanes = 32;

// Where a fiber or the scheduler left off. ucontext begins a fiber; later on _setjmp and _longjmp
// take turns, for swapcontext asks the kernel for the signal mask each time.
struct Place {
  jmp_buf registers;
  const void* stack = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // the address sanitizer's
};

struct Warp {
  std::uint32_t given[2][kLanes];  // of this exchange and of the one before, which some still read
  unsigned arrived = 0;
  unsigned exchanges = 0;
};

struct Fiber {
  Place place;
  std::unique_ptr<char[]> memory;
  Dimension index{};
  bool is_done = true;
  const unsigned* awaited = nullptr;  // waits until this is no longer ...
  unsigned awaited_value = 0;         // ... this
};

struct Block {
  std::vector<std::unique_ptr<Fiber>> fibers;
  std::vector<Warp> warps;
  Dimension index{}, grid{};
  unsigned arrived = 0;
  unsigned barriers = 0;
  const std::function<void()>* kernel = nullptr;
};

Place scheduler;
Block block;
Fiber* running = nullptr;

void announce([[maybe_unused]] Place& from, [[maybe_unused]] const Place& to) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_bytes);
#endif
}
void arrive([[maybe_unused]] Place& at, [[maybe_unused]] Place* came_from) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(at.fake_stack, came_from != nullptr ? &came_from->stack : nullptr,
                                  came_from != nullptr ? &came_from->stack_bytes : nullptr);
#endif
}

__attribute__((noinline)) void change(Place& from, Place& to) {
  announce(from, to);
  if (_setjmp(from.registers) == 0) _longjmp(to.registers, 1);
  arrive(from, nullptr);
}

// A fiber's whole life: one kernel after the other.
void live() {
  arrive(running->place, &scheduler);
  Fiber& self = *running;
  change(self.place, scheduler);
  for (;;) {
    (*block.kernel)();
    self.is_done = true;
    change(self.place, scheduler);
  }
}

std::unique_ptr<Fiber> born(unsigned index) {
  auto fiber = std::make_unique<Fiber>();
  fiber->index = {index};
  fiber->memory = std::make_unique<char[]>(kStackBytes);
  fiber->place.stack = fiber->memory.get();
  fiber->place.stack_bytes = kStackBytes;
  running = fiber.get();
  ucontext_t context;
  ucontext_t unused;
  getcontext(&context);
  context.uc_stack.ss_sp = fiber->memory.get();
  context.uc_stack.ss_size = kStackBytes;
  context.uc_link = nullptr;
  makecontext(&context, live, 0);
  announce(scheduler, fiber->place);
  if (_setjmp(scheduler.registers) == 0) swapcontext(&unused, &context);
  arrive(scheduler, nullptr);
  return fiber;
}

void wait_while(const unsigned& counter, unsigned value) {
  running->awaited = &counter;
  running->awaited_value = value;
  change(running->place, scheduler);
}

std::vector<unsigned> in_some_order(std::size_t count, std::mt19937_64& random) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0U);
  switch (random() % 3) {
    case 0:
      break;
    case 1:
      std::ranges::reverse(order);
      break;
    default:
      std::ranges::shuffle(order, random);
  }
  return order;
}

void run_block(std::mt19937_64& random) {
  block.arrived = 0;
  for (Warp& warp : block.warps) warp = {};
  for (const auto& fiber : block.fibers) {
    fiber->is_done = false;
    fiber->awaited = nullptr;
  }
  const std::vector<unsigned> order = in_some_order(block.fibers.size(), random);
  for (std::size_t left = order.size(); left > 0;) {
    bool has_moved = false;
    for (const unsigned i : order) {
      Fiber& fiber = *block.fibers[i];
      if (fiber.is_done) continue;
      if (fiber.awaited != nullptr && *fiber.awaited == fiber.awaited_value) continue;
      fiber.awaited = nullptr;
      running = &fiber;
      change(scheduler, fiber.place);
      has_moved = true;
      if (fiber.is_done) --left;
    }
    if (!has_moved) {
      block.fibers.clear();  // they stand somewhere in the kernel: not to be used again
      throw Deadlock("threads of block " + std::to_string(block.index.x) +
                     " wait for one another forever");
    }
  }
}

}  // namespace

const Dimension& thread_index() { return running->index; }
const Dimension& block_index() { return block.index; }
const Dimension& grid_dimension() { return block.grid; }

void wait_for_block() {
  const unsigned before = block.barriers;
  if (++block.arrived == block.fibers.size()) {
    block.arrived = 0;
    ++block.barriers;
    return;
  }
  wait_while(block.barriers, before);
}

const std::uint32_t* exchange_in_warp(std::uint32_t own) {
  Warp& warp = block.warps[running->index.x / kLanes];
  const unsigned now = warp.exchanges;
  warp.given[now % 2][running->index.x % kLanes] = own;
  if (++warp.arrived == kLanes) {
    warp.arrived = 0;
    ++warp.exchanges;
  } else {
    wait_while(warp.exchanges, now);
  }
  return warp.given[now % 2];
}

void run(unsigned blocks, unsigned threads, std::uint64_t seed, char* shared, char* shared_end,
         const std::function<void()>& kernel) {
  std::mt19937_64 random(seed);
  while (block.fibers.size() < threads) {
    block.fibers.push_back(born(static_cast<unsigned>(block.fibers.size())));
  }
  block.fibers.resize(threads);
  block.warps.resize(threads / kLanes);
  block.grid = {blocks};
  block.kernel = &kernel;
  for (const unsigned index : in_some_order(blocks, random)) {
    block.index = {index};
    std::memset(shared, static_cast<int>(random() % 256),
                static_cast<std::size_t>(shared_end - shared));
    run_block(random);
  }
}

}  // namespace riffle::emulator
