// What the patches call from nccl-tests' common.cu: gradient-like data, checks of sums that are not
// the exact ones, and columns about Riffle. README.md says what a user sees of it.
//
// Included by common.cu alone, for which everything here is inline. Functions named after a place
// (`before_warm_up`, ...) are called there, by every thread of every process unless said otherwise.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common.h"
#include "riffle_check.h"
#include "riffle_record.h"
#include "riffle_state.h"
#include "riffle_window_check.h"

#define RIFFLE_USAGE                                                                               \
  "[-y heavy] gradient-like data (all_reduce_perf; -b = -e, -m 1, sums of floats) \n\t"            \
  "[-c sparse/relaxed] -y heavy, and the checks for RIFFLE_SPARSE and RIFFLE_SYNC, with the data " \
  "of several steps \n\t"

namespace riffle_tests {

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
