#include "test/modes/relaxed_job.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "test/modes/job_plans.h"

namespace riffle::testing {
namespace {

constexpr std::size_t kChunkBytes = 6144;

}  // namespace

RelaxedJob::RelaxedJob() : RelaxedJob(Options()) {}

RelaxedJob::RelaxedJob(const Options& options)
    : MemoryJob({.nodes = kNodes,
                 .rate_kbps = 400'000,
                 .settings = options.settings,
                 .piece_bytes = 256,
                 .chunk_bytes = kChunkBytes},
                options.seed, options.calls),
      options_(options),
      groups_(grid_plans()) {
  plans_.relaxed = groups_;
  plans_.relaxed.chunk_bytes = options_.chunk_bytes;
  for (int r = 0; r < kNodes; ++r) {
    node(r).options.replan.collectives = options_.interval;
    node(r).on_post = [this](Operation* op) {
      if (is_over_all(op->step, op->lane)) op->step = Operation::kExact;
    };
  }
  connect();
}

void RelaxedJob::draw(int /*r*/, const JobCall& /*call*/, std::mt19937* values,
                      std::vector<float>* data) const {
  for (float& x : *data) x = static_cast<float>((*values)()) * 0x1p-30F - 1.8F;  // mean 0.2
}

CallIdentity RelaxedJob::identity_of(int r, std::uint64_t step, std::size_t index) const {
  if (!without_profiler.contains(r)) return MemoryJob::identity_of(r, step, index);
  CallIdentity id;
  id.why_not = "events were lost";
  return id;
}

bool RelaxedJob::is_over_all(std::int64_t step, std::uint64_t lane) const {
  return step != Operation::kExact && meets_all &&
         meets_all(static_cast<std::uint64_t>(step), lane);
}

// ------------------------------------------------------------------------------------------ check

std::string RelaxedJob::check(std::uint64_t step, std::size_t index, const Outcome& outcome) {
  // A mode begins with the first call that is staged, wherever in the job's step that is. (A call
  // that is no large sum is never staged.)
  if (outcome.staged == 0) {
    if (is_large(outcome.call)) first_call_.reset();
    return check_exact(outcome);
  }
  if (!first_call_) {
    first_call_ = number(step, index);
    mode_calls_ = calls();
    mean_.clear();
    shadow_.clear();
    moved_.clear();
  }
  relaxed_elements_ += outcome.call.valid;
  if (are_buckets_moved_) return check_passed_on(outcome);
  Place place;
  place.since = number(step, index) - *first_call_;
  place.step = place.since / mode_calls_.size();
  place.index = index;
  const std::uint64_t every = options_.settings.full_every;
  place.is_full = place.step == last_step() || (every > 0 && place.step % every == every - 1);
  place.segment = segment_of(outcome.call.valid);
  if (!follows_other_rules()) return check_mean(outcome, place);
  std::string e = check_moved(outcome, place);
  if (e.empty() && options_.settings.mode == SyncMode::kShadowSync && !has_faults()) {
    e = check_shadow(outcome, place);
  }
  return e;
}

std::string RelaxedJob::check_exact(const Outcome& o) const {
  const std::vector<Numbers> outputs = o.valid(o.output);
  std::string e = differing_bits(outputs);
  return e.empty() ? wrong_sum(outputs[0], o.valid(o.input)) : e;
}

std::string RelaxedJob::check_passed_on(const Outcome& o) const {
  for (std::uint64_t e = 0; e < o.call.valid; ++e) {
    for (int r = 0; r < kNodes; ++r) {
      if (o.output[r][e] != kNodes * o.input[r][e]) {
        return "element " + std::to_string(e) + " on node " + std::to_string(r) +
               " is not the node's own";
      }
    }
  }
  return "";
}

// The step that an order to end the mode made its last one.
std::uint64_t RelaxedJob::last_step() const {
  for (const ModeChange& c : changes) {
    if (c.mode != SyncMode::kExact || c.first_call < *first_call_) continue;
    return (c.first_call - *first_call_ + mode_calls_.size() - 1) / mode_calls_.size();
  }
  return ~0ull;
}

// Elements of all segments but the last: even ones on cache lines.
std::uint64_t RelaxedJob::segment_of(std::uint64_t valid) const {
  const std::uint64_t room = kChunkBytes / 4 / 16 * 16 - 16;  // the trailer needs 9
  const std::uint64_t most = options_.chunk_bytes == 0 ? room : options_.chunk_bytes / 64 * 16;
  const std::uint64_t segments = (valid + most - 1) / most;
  return ((valid + segments - 1) / segments + 15) / 16 * 16;
}

std::uint64_t RelaxedJob::first_lane(const Place& place) const {
  const std::size_t period = mode_calls_.size();
  std::uint64_t lane = 0;
  for (std::size_t i = 0; i < place.since % period; ++i) {
    const JobCall& c = mode_calls_[(place.index + period - place.since % period + i) % period];
    if (is_large(c)) lane += (c.valid + segment_of(c.valid) - 1) / segment_of(c.valid);
  }
  return lane;
}

// Of these the rules have tests of their own; here it counts that no contribution is lost, and that
// a step over all nodes brings them together.
bool RelaxedJob::follows_other_rules() const {
  return options_.settings.mode == SyncMode::kShadowSync || options_.settings.momentum > 0;
}

bool RelaxedJob::keeps_the_mean() const {
  return options_.settings.mode != SyncMode::kShadowSync ||
         !has_pull(options_.settings.shadow.variant);
}

std::string RelaxedJob::check_moved(const Outcome& o, const Place& place) {
  const bool has_momentum = options_.settings.momentum > 0;
  Moved& moved = moved_[place.index];
  moved.by.resize(kNodes, std::vector<double>(o.call.valid, 0));
  moved.asked.resize(o.call.valid);
  double apart = 0;
  for (std::uint64_t e = 0; e < o.call.valid; ++e) {
    double mean = 0;
    for (int r = 0; r < kNodes; ++r) {
      moved.by[r][e] += static_cast<double>(o.output[r][e]) / kNodes;
      moved.asked[e] += static_cast<double>(o.input[r][e]) / kNodes;
      mean += moved.by[r][e] / kNodes;
    }
    const double asked = moved.asked[e], tolerance = 1e-4 * (1 + std::fabs(asked));
    for (int r = 0; r < kNodes; ++r) {
      const double d = moved.by[r][e] - mean;
      apart += d * d / kNodes / static_cast<double>(o.call.valid);
      if (place.is_full && !has_momentum && keeps_the_mean() &&
          !(std::fabs(moved.by[r][e] - asked) <= tolerance)) {
        return "after a step over all nodes node " + std::to_string(r) + " moved by " +
               std::to_string(moved.by[r][e]) + " instead of " + std::to_string(asked);
      }
    }
    if (has_momentum && !(std::fabs(mean - asked) <= tolerance)) return "the mean is not kept";
  }
  most_apart_ = std::max(most_apart_, apart);
  return "";
}

std::string RelaxedJob::check_shadow(const Outcome& o, const Place& place) {
  const auto groups = [this, lane = first_lane(place)](std::uint64_t round, std::uint64_t segment,
                                                       int r) {
    return group_of(groups_, round, lane + segment, r);
  };
  ShadowReference& reference = shadow_
                                   .try_emplace(place.index, options_.settings.shadow, kNodes,
                                                o.call.valid, place.segment, groups)
                                   .first->second;
  ShadowReference::Call call{&o.input, &o.output, o.brings};
  call.is_full = place.is_full;
  call.begins_round = !place.is_full && place.step % options_.settings.shadow_steps == 0;
  call.round = place.step / options_.settings.shadow_steps;
  std::string e = reference.check(call);
  worst_error_ = std::max(worst_error_, reference.worst_error());
  return e;
}

std::string RelaxedJob::check_mean(const Outcome& o, const Place& place) {
  MeanReference& reference =
      mean_.try_emplace(place.index, kNodes, o.call.valid, place.segment).first->second;
  MeanReference::Call call{&o.input, &o.output, o.took_part, nullptr};
  call.group = [&, lane = first_lane(place)](std::uint64_t segment, int r) {
    const bool is_over_all_nodes =
        place.is_full || is_over_all(static_cast<std::int64_t>(place.step), lane + segment);
    if (!is_over_all_nodes) return group_of(groups_, place.step, lane + segment, r);
    std::vector<int> all(kNodes);
    std::iota(all.begin(), all.end(), 0);
    return all;
  };
  std::string e = reference.check(call);
  worst_error_ = std::max(worst_error_, reference.worst_error());
  return e;
}

}  // namespace riffle::testing
