// A job whose sums travel in a narrower type, by the direct plan, in which the sum of what all
// nodes sent is rounded once. So element by element, step by step:
//
//   result = sum of the gradients + what all nodes held back before - what they hold back now
//
// to one rounding; and the same bits everywhere.
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
    SyncSettings settings{.mode = SyncMode::kNarrow,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096};
    std::vector<JobCall> calls = usual_calls();
  };

  explicit NarrowJob(const Options& options);

  // As run(), with a look at what nodes hold back after every step.
  std::string run_each(int steps);

  std::uint64_t staged_calls() const { return staged_calls_; }
  // The largest |error| of any node now.
  double largest_error() const { return largest_error_; }
  // The largest difference of a result from the sum of the gradients.
  double largest_deviation() const { return largest_deviation_; }

 private:
  using Bucket = std::pair<std::uint32_t, std::uint64_t>;  // and its elements
  using Held = std::vector<std::vector<float>>;            // by node and element

  std::string check(std::uint64_t step, std::size_t index, const Outcome& outcome) override;
  std::string check_element(const Outcome& o, std::size_t e, const Held& after) const;
  std::string check_nodes() override;

  std::map<Bucket, Held> held();
  double rounding() const;
  bool may_be_no_number(const Outcome& o, std::size_t node, std::size_t e) const;

  const Options options_;
  std::map<Bucket, Held> before_;
  std::uint64_t staged_calls_ = 0;
  double largest_error_ = 0, largest_deviation_ = 0;
};

}  // namespace riffle::testing
