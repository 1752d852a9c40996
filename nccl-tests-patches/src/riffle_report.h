// What the patches call from nccl-tests' common.cu: gradient-like data, checks of sums that are not
// the exact ones, and columns about Riffle. README.md says what a user sees of it.
//
// Included by common.cu alone, for which everything here is inline. Functions named after a place
// (`before_warm_up`, ...) are called there, by every thread of every process unless said otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common.h"
#include "riffle_check.h"
#include "riffle_gradients.h"
#include "riffle_record.h"

// common.cu's own, defined behind the place where it includes this.
testResult_t startColl(struct threadArgs* args, ncclDataType_t type, ncclRedOp_t op, int root,
                       int in_place, int iter);
testResult_t completeColl(struct threadArgs* args);
template <typename T>
void Allreduce(struct threadArgs* args, T* value, int average);

#define RIFFLE_USAGE                                                                               \
  "[-y heavy] gradient-like data (all_reduce_perf; -b = -e, -m 1, sums of floats) \n\t"            \
  "[-c sparse/relaxed] -y heavy, and the checks for RIFFLE_SPARSE and RIFFLE_SYNC, with the data " \
  "of several steps \n\t"

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

// ---- Numbers as the type that travels has them.

inline float as_half(float value) { return __half2float(__float2half(value)); }
#if HAVE_BF16
inline float as_bfloat16(float value) { return __bfloat162float(__float2bfloat16(value)); }
#endif

struct Numbers {
  bool is_known;
  Spacing spacing;
  Rounding rounding;
};

inline Numbers numbers_of(ncclDataType_t type) {
  if (type == ncclFloat) return {true, float32_spacing(), as_it_is};
  if (type == ncclHalf) return {true, float16_spacing(), as_half};
#if HAVE_BF16
  if (type == ncclBfloat16) return {true, bfloat16_spacing(), as_bfloat16};
#endif
  return {false, {}, nullptr};
}

inline testResult_t to_device(void* device, const std::vector<float>& numbers,
                              ncclDataType_t type) {
  if (type == ncclFloat) {
    CUDACHECK(cudaMemcpy(device, numbers.data(), numbers.size() * 4, cudaMemcpyHostToDevice));
    return testSuccess;
  }
  if (type == ncclHalf) {
    std::vector<half> narrow(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) narrow[i] = __float2half(numbers[i]);
    CUDACHECK(cudaMemcpy(device, narrow.data(), numbers.size() * 2, cudaMemcpyHostToDevice));
    return testSuccess;
  }
#if HAVE_BF16
  std::vector<__nv_bfloat16> narrow(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) narrow[i] = __float2bfloat16(numbers[i]);
  CUDACHECK(cudaMemcpy(device, narrow.data(), numbers.size() * 2, cudaMemcpyHostToDevice));
#endif
  return testSuccess;
}

// `digest`: of the bytes as they are; may be null.
inline testResult_t from_device(std::vector<float>* numbers, const void* device,
                                ncclDataType_t type, long long* digest) {
  std::vector<char> bytes(numbers->size() * wordSize(type));
  CUDACHECK(cudaMemcpy(bytes.data(), device, bytes.size(), cudaMemcpyDeviceToHost));
  if (digest != nullptr) *digest = digest_of(bytes.data(), bytes.size());
  if (type == ncclFloat) {
    memcpy(numbers->data(), bytes.data(), bytes.size());
  } else if (type == ncclHalf) {
    const half* wide = reinterpret_cast<const half*>(bytes.data());
    for (size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] = __half2float(wide[i]);
  } else {
#if HAVE_BF16
    const __nv_bfloat16* wide = reinterpret_cast<const __nv_bfloat16*>(bytes.data());
    for (size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] = __bfloat162float(wide[i]);
#endif
  }
  return testSuccess;
}

// ---- Options. The main thread, before there are others.

inline bool takes_data(const char* text) {
  if (strcmp(text, "heavy") != 0) return false;
  state().is_heavy = true;
  return true;
}

inline bool takes_check(const char* text, int* datacheck) {
  if (strcmp(text, "sparse") != 0 && strcmp(text, "relaxed") != 0) return false;
  state().check = text[0] == 's' ? Check::kSparse : Check::kRelaxed;
  state().is_heavy = true;
  *datacheck = 1;
  return true;
}

inline std::string setting(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}

// Whether what was asked for can be had; else says why not.
inline bool options_fit(size_t least_bytes, size_t most_bytes, int aggregated, int graphs, int type,
                        int op) {
  if (!state().is_heavy) return true;
  const char* wrong = nullptr;
  const std::string residual = setting("RIFFLE_SPARSE_RESIDUAL");
  const std::string rule = setting("RIFFLE_SHADOW_RULE");
  if (least_bytes != most_bytes) {
    wrong =
        "needs one size per run (-b = -e): with several, the buffers move from call to call, and "
        "only their first place holds the data";
  } else if (aggregated != 1 || graphs != 0) {
    wrong = "needs -m 1 and -G 0: every call gets its own data";
  } else if (op != ncclSum) {
    wrong = "is for -o sum, the only operation that Riffle ever changes";
  } else if (type < 0 || !numbers_of(test_types[type]).is_known) {
    wrong = "is for -d float, half and bfloat16, the only types that Riffle ever changes";
  } else if (state().check == Check::kSparse && (residual == "local" || residual == "ef21")) {
    wrong =
        "is not for RIFFLE_SPARSE_RESIDUAL=local and ef21: their results do not add up to the "
        "gradients";
  } else if (state().check == Check::kRelaxed && !rule.empty() && rule != "delta" &&
             rule != "fir") {
    wrong = "is not for this RIFFLE_SHADOW_RULE: only delta and fir keep the mean";
  } else if (state().check == Check::kRelaxed && !setting("RIFFLE_MOMENTUM").empty()) {
    wrong = "is not for RIFFLE_MOMENTUM: what it keeps depends on earlier steps";
  }
  const char* option = state().check == Check::kUsual    ? "-y heavy"
                       : state().check == Check::kSparse ? "-c sparse"
                                                         : "-c relaxed";
  if (wrong != nullptr) fprintf(stderr, "%s %s\n", option, wrong);
  return wrong == nullptr;
}

// ---- Data, where nccl-tests makes and checks its own.

inline bool is_heavy() { return state().is_heavy; }

inline testResult_t fill(void* device, size_t count, size_t first, ncclDataType_t type,
                         uint64_t step, int rank) {
  std::vector<float> numbers(count);
  state().gradients.fill(step, rank, first, count, numbers.data(), numbers_of(type).rounding);
  state().step = step;
  return to_device(device, numbers, type);
}

constexpr size_t kBlock = 1 << 16;  // elements whose inputs are computed together

inline testResult_t check_exact(const void* results, size_t count, ncclDataType_t type, int ranks,
                                int64_t* wrong) {
  const Numbers kind = numbers_of(type);
  std::vector<float> numbers(count);
  TESTCHECK(from_device(&numbers, results, type, nullptr));
  *wrong = 0;
  for (size_t at = 0; at < count; at += kBlock) {
    const Inputs in = inputs_of(state().gradients, state().step, 1, ranks, at,
                                std::min(kBlock, count - at), kind.rounding);
    *wrong += (int64_t)wrong_exact(numbers.data() + at, in, ranks, kind.spacing);
  }
  return testSuccess;
}

// ---- The timed calls.

// In TimeTest. A relaxed mode would keep in its state what happens to lie in new memory.
inline testResult_t before_warm_up(struct threadArgs* args) {
  if (!is_heavy()) return testSuccess;
  if (strcmp(args->collTest->name, "AllReduce") != 0) {
    fprintf(stderr, "-y heavy, -c sparse and -c relaxed are for all_reduce_perf\n");
    return testNotImplemented;
  }
  if (args->nProcs != args->totalProcs) {
    fprintf(stderr, "-y heavy, -c sparse and -c relaxed are not for NCCL_TESTS_SPLIT\n");
    return testNotImplemented;
  }
  for (int i = 0; i < args->nGpus; ++i) {
    CUDACHECK(cudaSetDevice(args->gpus[i]));
    CUDACHECK(cudaMemset(args->sendbuffs[i], 0, args->maxbytes));
    CUDACHECK(cudaMemset(args->recvbuffs[i], 0, args->maxbytes));
    CUDACHECK(cudaDeviceSynchronize());
  }
  return testSuccess;
}

// Calls since before_calls(), each with the data of step kTimedStep.
inline int& calls_so_far() {
  static thread_local int calls = 0;
  return calls;
}

constexpr int kTimedStep = 99;  // nccl-tests' own number for the data of timed calls

// Before every call. In place the last call has put its sum where the data were: the copy of them
// in the send buffer, which is not in use then, comes back. On the stream, so its time counts.
inline testResult_t before_call(struct threadArgs* args, int in_place) {
  if (!is_heavy()) return testSuccess;
  ++calls_so_far();
  for (int i = 0; in_place && i < args->nGpus; ++i) {
    CUDACHECK(cudaMemcpyAsync(args->recvbuffs[i], args->sendbuffs[i], args->expectedBytes,
                              cudaMemcpyDeviceToDevice, args->streams[i]));
  }
  return testSuccess;
}

// In BenchTime, before its first call: the data, and -w calls with them. A mode begins when the
// same calls have come for a while, and those in place are others than those out of place.
inline testResult_t before_calls(struct threadArgs* args, ncclDataType_t type, ncclRedOp_t op,
                                 int root, int in_place, int warm_up) {
  if (!is_heavy()) return testSuccess;
  TESTCHECK(args->collTest->initData(args, type, op, root, kTimedStep, in_place));
  for (int i = 0; in_place && i < args->nGpus; ++i) {
    CUDACHECK(cudaSetDevice(args->gpus[i]));
    CUDACHECK(cudaMemcpy(args->sendbuffs[i], args->recvbuffs[i], args->expectedBytes,
                         cudaMemcpyDeviceToDevice));
    CUDACHECK(cudaDeviceSynchronize());
  }
  calls_so_far() = 0;
  for (int call = 0; call < warm_up; ++call) {
    TESTCHECK(before_call(args, in_place));
    TESTCHECK(startColl(args, type, op, root, in_place, 0));
  }
  TESTCHECK(completeColl(args));
  return before_call(args, in_place);
}

// In BenchTime, with this thread's own time of a call: how far the ranks' times lie apart.
inline void own_time(struct threadArgs* args, double seconds, int in_place) {
  double least = seconds, largest = seconds;
  range_of(args, &least, &largest);
  if (is_main_thread) state().spread_us[in_place] = (largest - least) * 1e6;
}

// ... and with the one that is printed.
inline void printed_time(double seconds, int in_place) {
  if (is_main_thread) state().time_us[in_place] = seconds * 1e6;
}

// ---- The check.

inline bool has_check() { return state().check != Check::kUsual; }

constexpr int kCheckedSteps = 4;          // of a window, each with other data
constexpr uint64_t kFirstStep = 1 << 20;  // far from nccl-tests' own numbers

// Sums of `numbers` over all ranks, on each of them, without a call of NCCL's: that would be one
// that the mode does not expect, and end it.
inline void sum_over_ranks(struct threadArgs* args, std::vector<double>* numbers) {
  static std::vector<double> total;
  static std::mutex mutex;
  Barrier(args);
  if (args->thread == 0) total.assign(numbers->size(), 0);
  Barrier(args);
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < numbers->size(); ++i) total[i] += (*numbers)[i];
  }
  Barrier(args);
#ifdef MPI_SUPPORT
  if (args->thread == 0) {
    MPI_Allreduce(MPI_IN_PLACE, total.data(), (int)total.size(), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
  }
#endif
  Barrier(args);
  *numbers = total;
  Barrier(args);
}

// One BenchTime's check, on one thread.
class WindowCheck {
 public:
  WindowCheck(struct threadArgs* args, ncclDataType_t type, ncclRedOp_t op, int root, int in_place)
      : args_(args),
        type_(type),
        op_(op),
        root_(root),
        in_place_(in_place),
        count_(args->expectedBytes / wordSize(type)),
        kind_(numbers_of(type)),
        calls_before_(calls_so_far()),
        windows_(args->nGpus, Window(count_)),
        results_(count_) {}

  testResult_t run(int64_t* wrong) {
    TESTCHECK(drain(/*counts*/ false));
    for (int step = 0; step < kCheckedSteps; ++step) TESTCHECK(call((int)step, /*counts*/ true));
    const double steps = kCheckedSteps * (double)count_ * args_->nGpus;
    const double delivered = (double)delivered_ / steps;
    TESTCHECK(drain(/*counts*/ true));
    const bool is_sparse = state().check == Check::kSparse;
    *wrong = is_sparse ? wrong_sparse_elements() : wrong_relaxed_elements();
    if (is_sparse) *wrong += others_bits_;
    if (args_->reportErrors && *wrong != 0) args_->errors[0]++;
    long long all = *wrong;
    Allreduce(args_, &all, /*sum*/ 4);
    *wrong = all;
    if (is_main_thread) tell(delivered);
    return testSuccess;
  }

 private:
  static int most_drains() {
    const char* text = getenv("NCCL_TESTS_DRAIN");
    const int number = text == nullptr ? 0 : atoi(text);
    return number > 0 ? number : 2000;
  }

  void* sends(int gpu) const { return in_place_ ? args_->recvbuffs[gpu] : args_->sendbuffs[gpu]; }

  // One call with the data of a step, or with zeros (step < 0).
  testResult_t call(int step, bool counts) {
    for (int i = 0; i < args_->nGpus; ++i) {
      CUDACHECK(cudaSetDevice(args_->gpus[i]));
      // What is not written is no number, and counts as wrong.
      if (!in_place_) CUDACHECK(cudaMemset(args_->recvbuffs[i], 0xff, args_->expectedBytes));
      if (step < 0) {
        CUDACHECK(cudaMemset(sends(i), 0, args_->expectedBytes));
      } else {
        TESTCHECK(fill(sends(i), count_, 0, type_, kFirstStep + step, rank_of(args_, i)));
      }
      CUDACHECK(cudaDeviceSynchronize());
    }
    TESTCHECK(startColl(args_, type_, op_, root_, in_place_, 0));
    TESTCHECK(completeColl(args_));
    if (step == 0) TESTCHECK(plant());
    return look(counts);
  }

  // What a test of this check asks for: 1 is added to ELEMENT of RANK's result of one call.
  testResult_t plant() {
    int rank = 0;
    unsigned long long element = 0;
    const char* text = getenv("NCCL_TESTS_PLANT");
    if (text == nullptr) return testSuccess;
    if (sscanf(text, "%d:%llu", &rank, &element) != 2 || element >= count_) {
      fprintf(stderr, "NCCL_TESTS_PLANT=%s is not RANK:ELEMENT, with an element below %zu\n", text,
              count_);
      return testInternalError;
    }
    for (int i = 0; i < args_->nGpus; ++i) {
      if (rank_of(args_, i) != rank) continue;
      char* at = (char*)args_->recvbuffs[i] + element * wordSize(type_);
      std::vector<float> one(1);
      TESTCHECK(from_device(&one, at, type_, nullptr));
      one[0] += 1;
      TESTCHECK(to_device(at, one, type_));
    }
    return testSuccess;
  }

  // Takes the results in.
  testResult_t look(bool counts) {
    long long least = std::numeric_limits<long long>::max(), largest = 0;
    std::vector<long long> digests(args_->nGpus);
    size_ = 0;
    for (int i = 0; i < args_->nGpus; ++i) {
      TESTCHECK(from_device(&results_, args_->recvbuffs[i], type_, &digests[i]));
      for (const float number : results_) {
        delivered_ += counts && number != 0;
        size_ += std::fabs((double)number);
      }
      if (counts) windows_[i].add(results_.data());
      least = std::min(least, digests[i]);
      largest = std::max(largest, digests[i]);
    }
    if (!counts) return testSuccess;
    range_of(args_, &least, &largest);
    calls_that_differ_ += least != largest;
    for (const long long digest : digests) others_bits_ += digest != least;
    return testSuccess;
  }

  // Calls with zeros until nothing more comes out, of a relaxed mode: next to nothing.
  testResult_t drain(bool counts) {
    const bool is_sparse = state().check == Check::kSparse;
    const double little = is_sparse ? 0 : 1e-7 * ranks_of(args_) * size_of_a_step();
    const int most = most_drains();
    long long is_left = 1;
    for (int calls = 0; is_left != 0 && calls < most; ++calls) {
      TESTCHECK(call(-1, counts));
      is_left = !(size_ <= little);  // also if it is no number
      Allreduce(args_, &is_left, /*max*/ 3);
    }
    is_drained_ = is_drained_ && is_left == 0;
    return testSuccess;
  }

  double size_of_a_step() const {
    double size = 0;
    for (int i = 0; i < args_->nGpus; ++i) {
      std::vector<float> numbers(count_);
      state().gradients.fill(kFirstStep, rank_of(args_, i), 0, count_, numbers.data());
      for (const float number : numbers) size += std::fabs((double)number);
    }
    return size;
  }

  Inputs inputs_at(size_t at) const {
    return inputs_of(state().gradients, kFirstStep, kCheckedSteps, ranks_of(args_), at,
                     std::min(kBlock, count_ - at), kind_.rounding);
  }

  int64_t wrong_sparse_elements() const {
    size_t wrong = 0;
    for (size_t at = 0; at < count_; at += kBlock) {
      const Inputs in = inputs_at(at);
      for (const Window& window : windows_) {
        wrong += wrong_sparse(window, at, in, ranks_of(args_), kind_.spacing);
      }
    }
    return (int64_t)wrong;
  }

  // Counted by rank 0 alone: sums over all ranks are wrong on all of them.
  int64_t wrong_relaxed_elements() const {
    size_t wrong = 0;
    for (size_t at = 0; at < count_; at += kBlock) {
      const size_t length = std::min(kBlock, count_ - at);
      std::vector<double> sums(length), weights(length);
      for (const Window& window : windows_) {
        for (size_t i = 0; i < length; ++i) {
          sums[i] += window.sum()[at + i];
          weights[i] += window.weight()[at + i];
        }
      }
      sum_over_ranks(args_, &sums);
      sum_over_ranks(args_, &weights);
      if (rank_of(args_, 0) != 0) continue;
      std::vector<double> before =
          inputs_of(state().gradients, kTimedStep, 1, ranks_of(args_), at, length, kind_.rounding)
              .most;
      for (double& number : before) number *= calls_before_;
      wrong += wrong_relaxed(sums, weights, windows_[0].calls(), inputs_at(at), before,
                             ranks_of(args_), kind_.spacing);
    }
    return (int64_t)wrong;
  }

  void tell(double delivered) const {
    char text[400];
    const char* place = in_place_ ? "in place" : "out of place";
    const int calls = windows_[0].calls();
    if (state().check == Check::kSparse) {
      snprintf(
          text, sizeof text,
          "check sparse, %s: %.3g %% of the elements came with their own step, the rest within "
          "%d calls more%s; ranks differed in %d of %d calls",
          place, 100 * delivered, calls - kCheckedSteps,
          is_drained_ ? "" : ", after which there was still some (NCCL_TESTS_DRAIN)",
          calls_that_differ_, calls);
    } else {
      snprintf(text, sizeof text, "check relaxed, %s: ranks differed in %d of %d calls%s%s", place,
               calls_that_differ_, calls,
               calls_that_differ_ == 0 ? ": no relaxed mode was in force" : "",
               is_drained_ ? "" : "; corrections had not ended (NCCL_TESTS_DRAIN)");
    }
    state().findings.push_back(text);
  }

  struct threadArgs* const args_;
  const ncclDataType_t type_;
  const ncclRedOp_t op_;
  const int root_, in_place_;
  const size_t count_;
  const Numbers kind_;
  const int calls_before_;
  std::vector<Window> windows_;  // by GPU
  std::vector<float> results_;
  double size_ = 0;  // of this thread's last results, all magnitudes together
  uint64_t delivered_ = 0;
  int calls_that_differ_ = 0;
  int64_t others_bits_ = 0;  // results of this thread that others have not
  bool is_drained_ = true;
};

inline testResult_t check(struct threadArgs* args, ncclDataType_t type, ncclRedOp_t op, int root,
                          int in_place, int64_t* wrong) {
  return WindowCheck(args, type, op, root, in_place).run(wrong);
}

// ---- Columns. Only the main thread prints.

// The plan of this process's record. It is written up to half a second late, so the first look
// waits for it.
inline PlanInForce plan_in_force() {
  static const std::string path = record_of_process(setting("RIFFLE_RECORD"));
  static bool has_waited = false;
  PlanInForce plan;
  if (path.empty()) return plan;
  for (int tries = 0; tries < 15; ++tries) {
    std::ifstream record(path);
    plan = read_plan(record);
    if (!plan.name.empty() || has_waited) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  has_waited = true;
  return plan;
}

// A line below nccl-tests' own head of the table; `width` is that of its columns.
inline void titles(int width) {
  if (!is_main_thread) return;
  printf("#%*s  %9s  %7s  %7s  %7s  %7s  %s\n", width - 1, "", "bound", "x bound", "in pl.",
         "spread", "in pl.", "plan");
  printf("#%*s  %9s  %7s  %7s  %7s  %7s\n", width - 1, "", "(us)", "", "", "(us)", "(us)");
}

inline void columns(struct threadArgs* args) {
  if (!is_main_thread) return;
  const State& now = state();
  const bool is_all_reduce = strcmp(args->collTest->name, "AllReduce") == 0;
  const PlanInForce plan = is_all_reduce ? plan_in_force() : PlanInForce();
  const double bound_us = plan.bound_us_per_mib * (double)args->expectedBytes / (1 << 20);
  if (bound_us > 0) {
    printf("  %9.1f  %7.2f  %7.2f", bound_us, now.time_us[0] / bound_us, now.time_us[1] / bound_us);
  } else {
    printf("  %9s  %7s  %7s", "-", "-", "-");
  }
  const bool is_exact = plan.mode.empty() || plan.mode == "exact";
  printf("  %7.1f  %7.1f  %s%s%s", now.spread_us[0], now.spread_us[1],
         plan.name.empty() ? "-" : plan.name.c_str(), is_exact ? "" : ", ",
         is_exact ? "" : plan.mode.c_str());
}

// Before nccl-tests' own summary.
inline void findings() {
  if (!is_main_thread) return;
  for (const std::string& text : state().findings) printf("# %s\n", text.c_str());
}

}  // namespace riffle_tests
