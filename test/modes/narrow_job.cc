#include "test/modes/narrow_job.h"

#include <algorithm>
#include <cmath>

#include "topology/plan/planner.h"

namespace riffle::testing {
namespace {

constexpr std::size_t kTogether = 32;  // elements of float8 that share a power of two

}  // namespace

NarrowJob::NarrowJob(const Options& options)
    : MemoryJob({.nodes = options.nodes,
                 .rate_kbps = 400'000,
                 .settings = options.settings,
                 .type = options.type,
                 .piece_bytes = 512,
                 .chunk_bytes = 8192},
                options.seed, options.calls),
      options_(options) {
  plans_ = plan(even_fabric(options.nodes, 400'000), 32 << 20, {.only = "direct"})->plans;
  connect();
}

std::string NarrowJob::run_each(int steps) {
  for (int i = 0; i < steps; ++i) {
    if (std::string e = run(1); !e.empty()) return e;
  }
  return "";
}

double NarrowJob::rounding() const {
  return options_.settings.wire == WireFormat::kBfloat16 ? 0x1p-8 : 0x1p-4;
}

std::string NarrowJob::check(std::uint64_t /*step*/, std::size_t /*index*/, const Outcome& o) {
  if (std::string e = differing_bits(o.valid(o.output)); !e.empty()) return e;
  if (o.staged == 0) {
    const double unit = options_.type == DataType::kFloat32 ? 1e-6 : size() * 0x1p-8;
    return wrong_sum(o.valid(o.output)[0], o.valid(o.input), 1, unit);
  }
  ++staged_calls_;
  const std::map<Bucket, Held> now = held();
  const auto after = now.find({o.call.bucket, o.call.total});
  if (after == now.end()) return "";  // the mode has ended with this step
  for (std::size_t e = 0; e < o.call.valid; ++e) {
    if (std::string wrong = check_element(o, e, after->second); !wrong.empty()) return wrong;
    double sum = 0;
    for (const std::vector<float>& input : o.input) sum += static_cast<double>(input[e]);
    const double deviation = std::fabs(static_cast<double>(o.output[0][e]) - sum);
    if (std::isfinite(deviation)) largest_deviation_ = std::max(largest_deviation_, deviation);
  }
  return "";
}

// Only where it or, of float8, one that shares its block of 32 is none.
bool NarrowJob::may_be_no_number(const Outcome& o, std::size_t node, std::size_t e) const {
  const bool is_float8 = options_.settings.wire == WireFormat::kFloat8Block;
  const std::size_t begin = is_float8 ? e / kTogether * kTogether : e;
  const std::size_t end =
      is_float8 ? std::min<std::size_t>(begin + kTogether, o.call.valid) : e + 1;
  const auto input = o.input[node].begin();
  return std::any_of(input + static_cast<std::ptrdiff_t>(begin),
                     input + static_cast<std::ptrdiff_t>(end),
                     [](float x) { return !std::isfinite(x); });
}

std::string NarrowJob::check_element(const Outcome& o, std::size_t e, const Held& after) const {
  const auto result = static_cast<double>(o.output[0][e]);
  const std::size_t at = o.call.first + e;
  const auto found = before_.find({o.call.bucket, o.call.total});
  const auto before = [&](std::size_t r) {
    return found == before_.end() || found->second[r].empty() ? 0 : found->second[r][at];
  };
  bool is_no_number = false;
  double sum = 0, magnitude = 0;
  double not_kept = 0;  // what a node in doubt sends is rounded, and it has no place for the rest
  for (std::size_t r = 0; r < o.input.size(); ++r) {
    if (after[r].empty()) return "";  // the mode has ended there
    if (may_be_no_number(o, r, e)) {
      is_no_number = true;
      if (after[r][at] != before(r)) return "what a node holds back changed without a number";
    }
    if (!std::isfinite(after[r][at])) return "what a node holds back is no number";
    const auto x = static_cast<double>(o.input[r][e]);
    sum += x + static_cast<double>(before(r)) - static_cast<double>(after[r][at]);
    magnitude += std::fabs(x) + std::fabs(static_cast<double>(after[r][at]));
    if (!o.took_part[r]) not_kept += std::fabs(x);
  }
  if (is_no_number) return "";
  // A block's largest number, of which its others may lose a little, is in the hundreds at most.
  const double absolute = options_.settings.wire == WireFormat::kFloat8Block ? 0x1p-17 * 1024 : 0;
  const double allowed = rounding() * (std::fabs(sum) + not_kept) + 1e-5 * magnitude + absolute +
                         (options_.type == DataType::kFloat32 ? 0 : 0x1p-8 * std::fabs(sum));
  if (std::fabs(result - sum) <= allowed) return "";
  return "element " + std::to_string(e) + " is " + std::to_string(result) + ", expected " +
         std::to_string(sum) + " to " + std::to_string(allowed);
}

std::map<NarrowJob::Bucket, NarrowJob::Held> NarrowJob::held() {
  std::map<Bucket, Held> all;
  largest_error_ = 0;
  for (int r = 0; r < size(); ++r) {
    RelaxedRun* const run = node(r).calls->run();
    if (run == nullptr) continue;
    for (std::size_t i = 0; i < run->positions().size(); ++i) {
      const float* const error = run->narrow()->error(i);
      if (error == nullptr) continue;
      const Layout::Piece& p = run->position(i).piece;
      Held& held = all[{bucket_of(p.buffer), p.total}];
      held.resize(static_cast<std::size_t>(size()));
      std::vector<float>& own = held[static_cast<std::size_t>(r)];
      own.resize(p.total);
      std::copy_n(error, p.valid, own.begin() + static_cast<std::ptrdiff_t>(p.first));
      for (std::uint64_t e = 0; e < p.valid; ++e) {
        largest_error_ = std::max(largest_error_, std::fabs(static_cast<double>(error[e])));
      }
    }
  }
  return all;
}

std::string NarrowJob::check_nodes() {
  before_ = held();
  return "";
}

}  // namespace riffle::testing
