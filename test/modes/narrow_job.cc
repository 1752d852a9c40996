#include "test/modes/narrow_job.h"

#include <algorithm>
#include <cmath>

namespace riffle::testing {

NarrowJob::NarrowJob(const Options& options)
    : MemoryJob({.nodes = options.nodes,
                 .rate_kbps = 400'000,
                 .settings = options.settings,
                 .type = options.type,
                 .piece_bytes = 512,
                 .chunk_bytes = 8192},
                options.seed, options.calls),
      options_(options) {
  connect();
}

void NarrowJob::draw(int r, const JobCall& call, std::mt19937* values,
                     std::vector<float>* data) const {
  std::normal_distribution<float> normal;
  for (float& x : *data) {
    const float n = normal(*values);
    x = options_.lone >= 0 && r != options_.lone ? 0 : n * n * n;
  }
  for (std::uint64_t i = call.valid; i < call.count; i += 3) (*data)[i] = std::nanf("");
}

double NarrowJob::rounding() const {
  return options_.settings.wire == WireFormat::kBfloat16 ? 0x1p-8 : 0x1p-4;
}

std::string NarrowJob::check(std::uint64_t /*step*/, std::size_t /*index*/, const Outcome& o) {
  if (std::string e = differing_bits(o.valid(o.output)); !e.empty()) return e;
  if (o.staged == 0) return wrong_sum(o.valid(o.output)[0], o.valid(o.input));
  ++staged_calls_;
  exact_calls_ += wrong_sum(o.valid(o.output)[0], o.valid(o.input)).empty();
  std::vector<double>& owed = owed_[{o.call.bucket, o.call.total}];
  owed.resize(o.call.total);
  // Blocks of float8 have a largest element, of which small ones lose a little.
  double largest = 0;
  for (const Numbers& input : o.valid(o.input)) {
    for (const float x : input) {
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(static_cast<double>(x)));
    }
  }
  for (std::size_t e = 0; e < o.call.valid; ++e) {
    double sum = 0, magnitude = 0;
    for (const std::vector<float>& input : o.input) {
      sum += static_cast<double>(input[e]);
      magnitude += std::fabs(static_cast<double>(input[e]));
    }
    const auto result = static_cast<double>(o.output[0][e]);
    if (!std::isfinite(sum) && std::isfinite(result)) return "finite where an input was not";
    if (!std::isfinite(result)) continue;
    owed[o.call.first + e] += sum - result;
    // Every node rounds once, each stage of the plan its partial sums; and errors of the step
    // before are up to a rounding of the largest element.
    const double stages = 4;
    const double allowed = stages * rounding() * (magnitude + size() * rounding() * largest) +
                           size() * 0x1p-14 * largest;
    const double deviation = std::fabs(result - sum);
    if (!(deviation <= allowed)) {
      return "element " + std::to_string(e) + " is " + std::to_string(result) + ", expected " +
             std::to_string(sum) + " to " + std::to_string(allowed);
    }
    largest_deviation_ = std::max(largest_deviation_, deviation / largest);
  }
  return "";
}

// Of all nodes, by bucket and element.
std::map<NarrowJob::Bucket, std::vector<double>> NarrowJob::errors() {
  std::map<Bucket, std::vector<double>> held;
  largest_error_ = 0;
  for (int r = 0; r < size(); ++r) {
    RelaxedRun* const run = node(r).calls->run();
    if (run == nullptr) continue;
    for (std::size_t i = 0; i < run->positions().size(); ++i) {
      const float* const error = run->narrow()->error(i);
      if (error == nullptr) continue;
      const Layout::Piece& p = run->position(i).piece;
      std::vector<double>& sum = held[{bucket_of(p.buffer), p.total}];
      sum.resize(p.total);
      for (std::uint64_t e = 0; e < p.valid; ++e) {
        sum[p.first + e] += static_cast<double>(error[e]);
        largest_error_ = std::max(largest_error_, std::fabs(static_cast<double>(error[e])));
      }
    }
  }
  return held;
}

std::string NarrowJob::check_nodes() {
  const std::map<Bucket, std::vector<double>> held = errors();
  if (options_.lone < 0 || held.empty()) return "";
  for (const auto& [bucket, errors] : held) {
    const std::vector<double>& owed = owed_[bucket];
    for (std::size_t e = 0; e < owed.size(); ++e) {
      if (!(std::fabs(errors[e] - owed[e]) <= 1e-3)) {
        return "element " + std::to_string(e) + " of bucket " + std::to_string(bucket.first) +
               ": held back is " + std::to_string(errors[e]) + ", owed " + std::to_string(owed[e]);
      }
    }
  }
  return "";
}

}  // namespace riffle::testing
