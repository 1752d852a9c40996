// What a run of nccl-tests with Riffle's options keeps, who the ranks are, and the numbers that
// they have: gradient-like, computed by each rank for all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "common.h"
#include "riffle_gradients.h"
#include "riffle_numbers.h"

// common.cu's own, defined behind the place where it includes this.
testResult_t startColl(struct threadArgs* args, ncclDataType_t type, ncclRedOp_t op, int root,
                       int in_place, int iter);
testResult_t completeColl(struct threadArgs* args);
template <typename T>
void Allreduce(struct threadArgs* args, T* value, int average);

namespace riffle_tests {

enum class Check { kUsual, kSparse, kRelaxed };

struct State {
  Gradients gradients;
  bool is_heavy = false;
  Check check = Check::kUsual;
  std::atomic<std::uint64_t> step{0};  // of the data that lie in the buffers
  // Of a size's two runs, out of place and in place. Written by the main thread alone.
  double time_us[2] = {}, spread_us[2] = {};
  std::vector<std::string> findings;
};

inline State& state() {
  static State one;
  return one;
}

// The least and the largest of all ranks' values.
template <typename T>
void range_of(struct threadArgs* args, T* least, T* largest) {
  Allreduce(args, least, /*min*/ 2);
  Allreduce(args, largest, /*max*/ 3);
}

inline int ranks_of(const struct threadArgs* args) {
  return args->nProcs * args->nThreads * args->nGpus;
}
inline int rank_of(const struct threadArgs* args, int gpu) {
  return (args->proc * args->nThreads + args->thread) * args->nGpus + gpu;
}

inline bool has_check() { return state().check != Check::kUsual; }

inline std::string setting(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}

// Calls since before_calls(), each with the data of step kTimedStep.
inline int& calls_so_far() {
  static thread_local int calls = 0;
  return calls;
}

constexpr int kTimedStep = 99;  // nccl-tests' own number for the data of timed calls

inline bool is_heavy() { return state().is_heavy; }

inline testResult_t fill(void* device, size_t count, size_t first, ncclDataType_t type,
                         uint64_t step, int rank) {
  std::vector<float> numbers(count);
  state().gradients.fill(step, rank, first, count, numbers.data(), numbers_of(type).rounding);
  state().step = step;
  return to_device(device, numbers, type);
}

constexpr size_t kBlock = 1 << 16;  // elements whose inputs are computed together

}  // namespace riffle_tests
