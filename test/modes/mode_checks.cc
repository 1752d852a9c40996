#include "test/modes/mode_checks.h"

#include <algorithm>
#include <cmath>

#include "test/modes/job_plans.h"

namespace riffle::sim {
namespace {

bool all_posted(const ModeOutcome& o, const std::vector<int>& nodes) {
  return std::ranges::all_of(nodes, [&](int r) { return o.parts[r].is_posted; });
}

testing::Numbers valid(const ModeOutcome& o, const std::vector<float>& numbers) {
  return testing::Numbers(numbers).first(o.call.valid);
}

}  // namespace

ModeChecks::ModeChecks(const Given& given, ModeCounts* counts) : given_(given), counts_(counts) {
  for (int r = 0; r < given_.nodes; ++r) {
    if (!given_.lost.contains(r)) left_.push_back(r);
  }
}

double ModeChecks::scale_of(std::size_t members) const {
  if (!given_.rescales) return 1;
  return static_cast<double>(given_.nodes) / static_cast<double>(members);
}

std::string ModeChecks::check(const ModeOutcome& o, std::size_t index) {
  std::size_t staged = 0;
  bool is_late = true, is_broken_off = false;
  for (const int r : left_) {
    const ModePart& p = o.parts[r];
    if (!p.is_done) return "not over everywhere";
    staged += p.is_staged;
    is_late = is_late && p.term > 0;
    is_broken_off = is_broken_off || p.broken > 0;
  }
  if (staged == 0) return check_exact(o);
  if (staged != left_.size()) return "not all alike";
  ++counts_->staged_calls;
  counts_->staged_after_loss += is_late;
  counts_->broken_off += is_broken_off;
  if (o.mode == SyncMode::kSparse) return check_sparse(o);
  if (o.mode == SyncMode::kNarrow) {
    // One that does not know its call leaves what it holds back.
    const std::string e = o.is_unknown ? "" : check_held_back(o);
    return e.empty() ? check_exact(o) : e;
  }
  std::string e;
  if (o.mode != SyncMode::kShadowSync && given_.settings.momentum == 0) e = check_relaxed(o);
  return e.empty() ? check_moved(o, index) : e;
}

std::string ModeChecks::differing_bits(const ModeOutcome& o) const {
  std::vector<testing::Numbers> outputs;
  for (const int r : left_) outputs.push_back(valid(o, o.parts[r].output));
  return testing::differing_bits(outputs);
}

std::string ModeChecks::check_exact(const ModeOutcome& o) const {
  if (std::string e = differing_bits(o); !e.empty()) return e;
  std::string wrong;
  for (const std::vector<int>& side : given_.sides) {
    if (!all_posted(o, side)) continue;
    const std::string e = wrong_among(o, side);
    if (e.empty()) return "";
    wrong += "; among " + std::to_string(side.size()) + " " + e;
  }
  return "the sum over no term's nodes" + wrong;
}

std::string ModeChecks::wrong_among(const ModeOutcome& o, const std::vector<int>& side) const {
  const testing::Numbers output = valid(o, o.parts[left_.front()].output);
  const bool is_narrow = o.parts[left_.front()].is_staged;
  std::vector<testing::Numbers> inputs;
  for (const int r : side) {
    if (is_narrow && o.parts[r].sent.empty())
      return "node " + std::to_string(r) + " sent it exactly";
    inputs.push_back(valid(o, is_narrow ? o.parts[r].sent : o.parts[r].input));
  }
  if (!is_narrow) return testing::wrong_sum(output, inputs, scale_of(side.size()));
  // Partial sums are rounded, some times.
  return testing::wrong_sum(output, inputs, scale_of(side.size()), 4 * rounding(), 0x1p-12);
}

double ModeChecks::rounding() const {
  return given_.settings.wire == WireFormat::kBfloat16 ? 0x1p-8 : 0x1p-4;
}

// What a node sent and what it holds back of that are its gradient but for what it held back
// before, a rounding of its numbers, 1.34 at most; and a loss changes none of it.
std::string ModeChecks::check_held_back(const ModeOutcome& o) const {
  for (const int r : left_) {
    const ModePart& p = o.parts[r];
    if (p.after != p.before) return "what node " + std::to_string(r) + " holds back has changed";
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      if (std::fabs(p.sent[e] + p.before[e] - p.input[e]) <= 1.5 * rounding()) continue;
      return "node " + std::to_string(r) + " sent " + std::to_string(p.sent[e]) + " of " +
             std::to_string(p.input[e]) + " and holds back " + std::to_string(p.before[e]);
    }
  }
  return "";
}

std::string ModeChecks::check_sparse(const ModeOutcome& o) {
  if (std::string e = differing_bits(o); !e.empty()) return e;
  for (std::size_t s = 0; s < o.parts[left_.front()].outcomes.size(); ++s) {
    if (std::string e = check_sparse_segment(o, s); !e.empty()) return e;
  }
  return "";
}

std::string ModeChecks::check_sparse_segment(const ModeOutcome& o, std::size_t s) {
  const ModePart& any = o.parts[left_.front()];
  const bool is_dense = any.outcomes[s] == SparseSegment::Outcome::kDense;
  if (!is_dense && any.outcomes[s] != SparseSegment::Outcome::kSparse) return "done again";
  if (given_.settings.sparse.residual == sparse::ResidualPolicy::kEf21) return "";
  bool is_known = true;
  std::string wrong;
  for (const std::vector<int>& side : given_.sides) {
    if (!is_dense && side.size() != any.among) continue;
    if (!all_posted(o, side)) continue;
    // Of a dense one nothing is left. What a lost node would have kept of a sparse one that it did
    // not see the end of, nobody knows.
    if (!is_dense && !std::ranges::all_of(side, [&](int r) { return o.parts[r].is_done; })) {
      is_known = false;
      continue;
    }
    const std::string e = not_conserved(o, s, side);
    if (e.empty()) {
      const bool is_among_fewer = side.size() < static_cast<std::size_t>(given_.nodes);
      counts_->dense_segments += is_dense && is_among_fewer;
      counts_->sparse_after_loss += !is_dense && is_among_fewer;
      return "";
    }
    wrong += "; among " + std::to_string(side.size()) + " " + e;
  }
  return is_known ? "not conserved" + wrong : "";
}

// If segment s ran among those of `side`: the first element of which something is lost, or empty.
std::string ModeChecks::not_conserved(const ModeOutcome& o, std::size_t s,
                                      const std::vector<int>& side) const {
  const std::uint64_t begin = s * o.segment, end = std::min(begin + o.segment, o.call.valid);
  for (std::uint64_t e = begin; e < end; ++e) {
    double owed = 0, held = 0, magnitude = 0;
    for (const int r : side) {
      const ModePart& p = o.parts[r];
      owed += static_cast<double>(p.input[e]) + static_cast<double>(p.before[e]);
      magnitude +=
          std::fabs(static_cast<double>(p.input[e])) + std::fabs(static_cast<double>(p.before[e]));
      if (p.is_done) held += static_cast<double>(p.after[e]);
    }
    held += static_cast<double>(o.parts[left_.front()].output[e]) / scale_of(side.size());
    if (!(std::fabs(held - owed) <= 1e-5 * magnitude)) {
      return "element " + std::to_string(e) + " is " + std::to_string(held) + ", owed is " +
             std::to_string(owed);
    }
  }
  return "";
}

// Each segment: what a survivor's state moved to is the mean of a group of one partition of one
// term's plans, or of all, or its own contribution; on all survivors of the same one.
std::string ModeChecks::check_relaxed(const ModeOutcome& o) const {
  const std::vector<Groups> candidates = groups_of(o);
  for (std::uint64_t begin = 0; begin < o.call.valid; begin += o.segment) {
    std::string wrong;
    bool is_any = false;
    for (const Groups& groups : candidates) {
      const std::string e = no_means(o, begin, groups);
      is_any = e.empty();
      if (is_any) break;
      if (wrong.empty()) wrong = e;
    }
    if (!is_any) return "no mean of any kind: " + wrong;
  }
  return "";
}

// That a segment may have been averaged in. None: each its own.
std::vector<ModeChecks::Groups> ModeChecks::groups_of(const ModeOutcome& o) const {
  std::vector<Groups> candidates = {{}};
  for (const std::vector<int>& side : given_.sides) {
    if (!all_posted(o, side)) continue;
    candidates.push_back({side});
    for (const GroupPlan& p : testing::half_plans(static_cast<int>(side.size())).partitions) {
      Groups groups;
      for (const Group& g : p.levels[0].groups) {
        groups.emplace_back();
        for (const int m : g.members) groups.back().push_back(side[m]);
      }
      candidates.push_back(groups);
    }
  }
  return candidates;
}

// The first element of the segment from `begin` on that is not its group's mean, or empty.
std::string ModeChecks::no_means(const ModeOutcome& o, std::uint64_t begin,
                                 const Groups& groups) const {
  const std::uint64_t end = std::min(begin + o.segment, o.call.valid);
  for (const int r : left_) {
    std::vector<int> group = {r};
    for (const std::vector<int>& g : groups) {
      if (std::ranges::find(g, r) != g.end()) group = g;
    }
    const ModePart& p = o.parts[r];
    for (std::uint64_t i = begin; i < end; ++i) {
      double mean = 0;
      for (const int m : group) {
        mean +=
            (static_cast<double>(o.parts[m].before[i]) + static_cast<double>(o.parts[m].input[i])) /
            static_cast<double>(group.size());
      }
      const auto before = static_cast<double>(p.before[i]);
      const auto after = static_cast<double>(p.after[i]);
      const double got = static_cast<double>(p.output[i]) / given_.nodes;
      const double tolerance = 1e-5 * (1 + std::fabs(mean) + std::fabs(before));
      const bool is_reset = p.is_full && after == 0;
      if (std::fabs(before + got - mean) > tolerance ||
          (!is_reset && std::fabs(after - mean) > tolerance)) {
        return "node " + std::to_string(r) + " at element " + std::to_string(i) + " moved from " +
               std::to_string(before) + " by " + std::to_string(got) + " to " +
               std::to_string(after) + ", expected " + std::to_string(mean);
      }
    }
  }
  return "";
}

// At a step over all survivors all have moved by as much; and what the mean of that is off by (the
// part in it that lost nodes had) stays the same from loss to loss.
std::string ModeChecks::check_moved(const ModeOutcome& o, std::size_t index) {
  Moved& m = moved_[index];
  m.moved.resize(given_.nodes, std::vector<double>(o.call.valid));
  m.asked.resize(o.call.valid);
  bool is_full = true, is_late = true;
  for (const int r : left_) {
    const ModePart& p = o.parts[r];
    is_full = is_full && p.is_full && p.broken == 0;
    is_late = is_late && p.term > 0;
    for (std::uint64_t e = 0; e < o.call.valid; ++e) {
      m.moved[r][e] += static_cast<double>(p.output[e]) / given_.nodes;
      m.asked[e] += static_cast<double>(p.input[e]) / static_cast<double>(left_.size());
    }
  }
  // A loss that nobody had to notice.
  const bool is_of_others = given_.latest_term == 0 && !given_.lost.empty();
  if (!is_full || is_of_others || given_.settings.momentum > 0 ||
      std::ranges::any_of(left_, [&](int r) { return o.parts[r].term < given_.latest_term; })) {
    return "";
  }
  counts_->full_after_loss += is_late;
  const bool is_first = m.offset.empty();
  m.offset.resize(o.call.valid);
  for (std::uint64_t e = 0; e < o.call.valid; ++e) {
    const double first = m.moved[left_.front()][e];
    for (const int r : left_) {
      if (std::fabs(m.moved[r][e] - first) > 1e-4 * (1 + std::fabs(first))) {
        return "after a step over all, node " + std::to_string(r) + " has moved by " +
               std::to_string(m.moved[r][e]) + ", another by " + std::to_string(first);
      }
    }
    const double offset = first - m.asked[e];
    if (!is_first && std::fabs(offset - m.offset[e]) > 1e-4 * (1 + std::fabs(m.asked[e]))) {
      return "element " + std::to_string(e) + " has moved by " + std::to_string(offset) +
             " more than was asked for, before it was " + std::to_string(m.offset[e]);
    }
    m.offset[e] = offset;
  }
  return "";
}

}  // namespace riffle::sim
