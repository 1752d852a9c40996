// A job whose sums travel in a narrower type. Two rules hold: a result is near the sum of all
// gradients and of what nodes held back, and has the same bits everywhere; and where but one node
// has gradients, so that no partial sum is rounded, nothing is lost at all: gradients so far =
// results so far + what that node still holds back.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "test/modes/memory_job.h"

namespace riffle::testing {

class NarrowJob final : public MemoryJob {
 public:
  struct Options {
    int nodes = 4;
    std::uint64_t seed = 1;
    DataType type = DataType::kFloat32;
    int lone = -1;  // the one node that has gradients
    SyncSettings settings{.mode = SyncMode::kNarrow,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096};
    std::vector<JobCall> calls = usual_calls();
  };

  explicit NarrowJob(const Options& options);

  std::uint64_t staged_calls() const { return staged_calls_; }
  // Of staged calls: those that came out exact, and the largest deviation, of all magnitudes.
  std::uint64_t exact_calls() const { return exact_calls_; }
  double largest_deviation() const { return largest_deviation_; }
  // The largest |error| of any node now.
  double largest_error() const { return largest_error_; }

 private:
  using Bucket = std::pair<std::uint32_t, std::uint64_t>;  // and its elements

  void draw(int r, const JobCall& call, std::mt19937* values,
            std::vector<float>* data) const override;
  std::string check(std::uint64_t step, std::size_t index, const Outcome& outcome) override;
  std::string check_nodes() override;

  std::map<Bucket, std::vector<double>> errors();
  double rounding() const;

  const Options options_;
  std::map<Bucket, std::vector<double>> owed_;  // since the mode began
  std::uint64_t staged_calls_ = 0, exact_calls_ = 0;
  double largest_deviation_ = 0, largest_error_ = 0;
};

}  // namespace riffle::testing
