// Checks -c sparse and -c relaxed: a window of calls of their own, whose sums and residuals have to
// add up (riffle_check.h has the arithmetic).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <vector>

#include "riffle_check.h"
#include "riffle_state.h"

namespace riffle_tests {

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
               calls_that_differ_ == 0 ? ": no relaxed mode was in force, or in groups of all nodes"
                                       : "",
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

}  // namespace riffle_tests
