// A job on eight nodes in a relaxed mode: the calls should give what the rules say, step by step in
// double precision.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "test/modes/mean_reference.h"
#include "test/modes/memory_job.h"
#include "test/modes/shadow_reference.h"

namespace riffle::testing {

inline constexpr int kNodes = 8;

class RelaxedJob final : public MemoryJob {
 public:
  struct Options {
    std::uint64_t seed = 1;
    SyncSettings settings{.mode = SyncMode::kDsSync,
                          .full_every = 7,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096};
    std::vector<JobCall> calls = usual_calls();
    std::uint64_t interval = 4;
    std::uint32_t chunk_bytes = 0;  // of the relaxed plans
  };

  RelaxedJob();
  explicit RelaxedJob(const Options& options);

  // Other buckets, all of them, in calls of the same shapes: their digests do not match.
  void move_buckets(std::vector<JobCall> calls) {
    change_calls(std::move(calls));
    are_buckets_moved_ = true;
  }
  std::uint64_t relaxed_elements() const { return relaxed_elements_; }
  double most_apart() const { return most_apart_; }    // the largest variance between nodes
  double worst_error() const { return worst_error_; }  // against the reference, relative

  std::set<int> without_profiler;
  // Where the plan of the moment has one group of all nodes, by step of the mode and lane.
  std::function<bool(std::uint64_t step, std::uint64_t lane)> meets_all;

 private:
  struct Place {                // of a call in the running mode
    std::uint64_t since = 0;    // calls since the mode began
    std::uint64_t step = 0;     // of the mode
    std::size_t index = 0;      // of the calls of a step
    bool is_full = false;       // the step is over all nodes
    std::uint64_t segment = 0;  // elements of all segments but the last
  };
  struct Moved {
    std::vector<std::vector<double>> by;  // by node and element
    std::vector<double> asked;            // by element: the mean of all inputs
  };

  void draw(int r, const JobCall& call, std::mt19937* values,
            std::vector<float>* data) const override;
  CallIdentity identity_of(int r, std::uint64_t step, std::size_t index) const override;
  std::string check(std::uint64_t step, std::size_t index, const Outcome& outcome) override;

  std::string check_exact(const Outcome& o) const;
  std::string check_passed_on(const Outcome& o) const;
  std::string check_moved(const Outcome& o, const Place& place);
  std::string check_shadow(const Outcome& o, const Place& place);
  std::string check_mean(const Outcome& o, const Place& place);

  bool is_large(const JobCall& c) const { return c.total * 4 >= options_.settings.min_bytes; }
  bool is_over_all(std::int64_t step, std::uint64_t lane) const;
  bool has_faults() const { return !lost.empty() || !not_finite.empty(); }
  bool follows_other_rules() const;
  bool keeps_the_mean() const;
  std::uint64_t last_step() const;
  std::uint64_t segment_of(std::uint64_t valid) const;
  std::uint64_t first_lane(const Place& place) const;

  const Options options_;
  const RelaxedPlans groups_;
  std::optional<std::uint64_t> first_call_;  // of the running mode
  std::vector<JobCall> mode_calls_;          // those of a step when it began
  bool are_buckets_moved_ = false;
  std::map<std::size_t, MeanReference> mean_;  // by call
  std::map<std::size_t, ShadowReference> shadow_;
  std::map<std::size_t, Moved> moved_;
  std::uint64_t relaxed_elements_ = 0;
  double worst_error_ = 0, most_apart_ = 0;
};

}  // namespace riffle::testing
