#include "test/modes/sparse_calls_job.h"

#include <algorithm>
#include <cmath>

#include "test/modes/job_plans.h"

namespace riffle::testing {

SparseCallsJob::SparseCallsJob(const Options& options)
    : MemoryJob({.nodes = options.nodes,
                 .rate_kbps = 400'000,
                 .settings = options.settings,
                 .type = options.type,
                 .piece_bytes = 256,
                 .chunk_bytes = options.chunk_bytes},
                options.seed, options.calls),
      options_(options) {
  for (int r = 0; r < size(); ++r) {
    node(r).hooks.replan.sparse_order = [this](const Fabric&, const PlanSet&) {
      return Result<SparseOrder>(
          sparse_order(size(), options_.teams, options_.is_recursive, large_calls_and_small()));
    };
  }
  connect();
}

// Of the sequence: those that are not outside of it.
std::size_t SparseCallsJob::large_calls_and_small() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      calls(), [this](const JobCall& c) { return c.count * size_of(options_.type) >= 256; }));
}

CallIdentity SparseCallsJob::identity_of(int r, std::uint64_t step, std::size_t index) const {
  CallIdentity id = MemoryJob::identity_of(r, step, index);
  id.first_element += id.is_sure && shifted.contains({r, step, index}) ? 1 : 0;
  return id;
}

// Adds one call to what is owed.
std::string SparseCallsJob::check(std::uint64_t /*step*/, std::size_t /*index*/, const Outcome& o) {
  if (std::string e = differing_bits(o.valid(o.output)); !e.empty()) return e;
  Owed& owed = owed_[{o.call.bucket, o.call.total}];
  owed.mass.resize(o.call.total);
  owed.tolerance.resize(o.call.total);
  std::size_t not_zero = 0;
  const double unit = std::ldexp(1.0, options_.type == DataType::kFloat32 ? -23 : -8);
  for (std::size_t e = 0; e < o.call.valid; ++e) {
    double sum = 0, magnitude = 0;
    for (const std::vector<float>& input : o.input) {
      sum += static_cast<double>(input[e]);
      magnitude += std::fabs(static_cast<double>(input[e]));
    }
    const auto result = static_cast<double>(o.output[0][e]);
    if (std::isfinite(sum) != std::isfinite(result)) {
      return "finite or not at element " + std::to_string(e) + ": " + std::to_string(result) +
             ", expected " + std::to_string(sum);
    }
    if (!std::isfinite(sum)) continue;
    not_zero += result != 0;
    // What is owed grows by what was not delivered; rounding in the result's type at each level.
    const std::size_t at = o.call.first + e;
    owed.mass[at] += sum - result;
    owed.tolerance[at] +=
        2 * size() * std::ldexp(1.0, -24) * (magnitude + std::fabs(owed.mass[at])) +
        size() * unit * (std::fabs(result) + magnitude);
  }
  if (o.staged > 0) {
    ++staged_calls_;
    last_density_ = static_cast<double>(not_zero) / static_cast<double>(o.call.valid);
  }
  return "";
}

// Of all nodes, by bucket and element.
std::map<SparseCallsJob::Bucket, std::vector<double>> SparseCallsJob::residuals() {
  std::map<Bucket, std::vector<double>> held;
  largest_residual_ = 0;
  for (int r = 0; r < size(); ++r) {
    for (RelaxedRun* run : {node(r).calls->run(), node(r).calls->owing()}) {
      if (run == nullptr) continue;
      for (std::size_t i = 0; i < run->positions().size(); ++i) {
        const Layout::Piece& p = run->position(i).piece;
        std::vector<double>& sum = held[{bucket_of(p.buffer), p.total}];
        sum.resize(p.total);
        for (const SparseSegment& s : run->sparse()->segments(i)) {
          for (std::uint64_t e = 0; e < s.elements; ++e) {
            const auto x = static_cast<double>(s.state.residual[e]);
            sum[p.first + s.first + e] += x;
            largest_residual_ = std::max(largest_residual_, std::fabs(x));
          }
        }
      }
    }
  }
  return held;
}

// The residuals of all nodes against what is owed.
std::string SparseCallsJob::check_nodes() {
  if (options_.settings.sparse.residual == sparse::ResidualPolicy::kEf21) return "";
  std::map<Bucket, std::vector<double>> held = residuals();
  for (const auto& [bucket, owed] : owed_) {
    const std::vector<double>& sum = held[bucket];
    for (std::size_t e = 0; e < owed.mass.size(); ++e) {
      const double is = e < sum.size() ? sum[e] : 0;
      if (!(std::fabs(is - owed.mass[e]) <= owed.tolerance[e])) {
        return "element " + std::to_string(e) + " of bucket " + std::to_string(bucket.first) +
               ": residuals hold " + std::to_string(is) + ", owed is " +
               std::to_string(owed.mass[e]);
      }
    }
  }
  return "";
}

}  // namespace riffle::testing
