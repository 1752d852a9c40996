// A job in the sparse mode. The rule that holds whatever happens: element by element, all gradients
// so far = all results so far + what all residuals hold.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "test/modes/memory_job.h"

namespace riffle::testing {

class SparseCallsJob final : public MemoryJob {
 public:
  struct Options {
    int nodes = 4;
    std::uint64_t seed = 1;
    std::uint64_t teams = 1;
    bool is_recursive = false;
    DataType type = DataType::kFloat32;
    SyncSettings settings{.mode = SyncMode::kSparse,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096,
                          .sparse = {.density = 0.02, .ramp_steps = 8}};
    std::vector<JobCall> calls = usual_calls();
    std::size_t chunk_bytes = 8192;
  };

  explicit SparseCallsJob(const Options& options);

  // Of calls that ran in the mode: how many, and the elements that were not zero in their results.
  std::uint64_t staged_calls() const { return staged_calls_; }
  double last_density() const { return last_density_; }
  // The largest |residual| of any node now.
  double largest_residual() const { return largest_residual_; }

  // Calls (node, step, call of the step) whose identity is moved by one element.
  std::set<std::tuple<int, std::uint64_t, std::size_t>> shifted;

 private:
  using Bucket = std::pair<std::uint32_t, std::uint64_t>;  // and its elements
  struct Owed {
    std::vector<double> mass, tolerance;
  };

  CallIdentity identity_of(int r, std::uint64_t step, std::size_t index) const override;
  std::string check(std::uint64_t step, std::size_t index, const Outcome& outcome) override;
  std::string check_nodes() override;

  std::size_t large_calls_and_small() const;
  std::map<Bucket, std::vector<double>> residuals();

  const Options options_;
  std::map<Bucket, Owed> owed_;
  std::uint64_t staged_calls_ = 0;
  double last_density_ = 0, largest_residual_ = 0;
};

}  // namespace riffle::testing
