// What must hold of every call of a job that loses nodes, element by element:
//
//   exact    the sum over all nodes, or the scaled one over the nodes of one term; the same bits
//   narrow   as exact, to the rounding of the type on the wire
//   sparse   result and new residuals = gradients and old residuals of those it ran among; the same
//            bits
//   relaxed  what a node's parameters moved by is what it got; each segment is the mean of a group
//            of one plan that ran, or everybody's own, and then on all survivors
//   shadow   as they moved; at steps over all nodes they are together
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "plugin/collective/base/sync_mode.h"
#include "plugin/collective/elastic/survivors.h"
#include "plugin/collective/sparse/sparse_segment.h"
#include "test/modes/expectations.h"
#include "test/modes/job_call.h"

namespace riffle::sim {

struct ModePart {  // of one call on one node
  bool is_posted = false, is_done = false, is_staged = false, is_full = false;
  std::uint64_t broken = 0, term = 0;
  std::vector<float> input, before, after, output;  // before, after: the mode's state,
  // as it is posted and when it is over
  std::vector<float> sent;  // of a sum in a narrower type
  std::vector<SparseSegment::Outcome> outcomes;
  std::size_t among = 0;  // nodes that a sparse one was ordered for
};

struct ModeOutcome {  // of one call
  testing::JobCall call;
  bool is_unknown = false;  // to the nodes: events were lost
  SyncMode mode = SyncMode::kExact;
  std::uint64_t segment = 0;  // elements of all but the last
  std::vector<ModePart> parts;
};

struct ModeCounts {
  std::uint64_t staged_calls = 0;       // of those that all survivors finished
  std::uint64_t staged_after_loss = 0;  // ... posted by all after the first loss was survived
  std::uint64_t dense_segments = 0;     // sparse ones that ran densely, among fewer nodes
  std::uint64_t broken_off = 0;         // calls in which a segment was left as each node's own
  std::uint64_t full_after_loss = 0;    // relaxed steps over all survivors
  std::uint64_t sparse_after_loss = 0;  // segments that were sparse among survivors
};

class ModeChecks {
 public:
  struct Given {
    int nodes = 0;
    SyncSettings settings;
    bool rescales = true;              // SurvivorOptions::rescales
    std::set<int> lost;                // whom a fault concerned
    std::set<std::vector<int>> sides;  // all terms' members
    std::uint64_t latest_term = 0;     // of any survivor; who has closed may not know of it
  };
  ModeChecks(const Given& given, ModeCounts* counts);

  // The job's calls in their order, `index`: of the calls of a step. What is wrong, or empty.
  std::string check(const ModeOutcome& o, std::size_t index);

 private:
  using Groups = std::vector<std::vector<int>>;
  struct Moved {
    std::vector<std::vector<double>> moved;  // by node, as each got it
    std::vector<double> asked, offset;  // by element: all survivors' gradients, and how far off
  };

  std::string check_exact(const ModeOutcome& o) const;
  std::string wrong_among(const ModeOutcome& o, const std::vector<int>& side) const;
  std::string check_held_back(const ModeOutcome& o) const;
  std::string check_sparse(const ModeOutcome& o);
  std::string check_sparse_segment(const ModeOutcome& o, std::size_t s);
  std::string not_conserved(const ModeOutcome& o, std::size_t s,
                            const std::vector<int>& side) const;
  std::string check_relaxed(const ModeOutcome& o) const;
  std::vector<Groups> groups_of(const ModeOutcome& o) const;
  std::string no_means(const ModeOutcome& o, std::uint64_t begin, const Groups& groups) const;
  std::string check_moved(const ModeOutcome& o, std::size_t index);
  std::string differing_bits(const ModeOutcome& o) const;
  double scale_of(std::size_t members) const;
  double rounding() const;  // of a number of a sum in a narrower type, by its magnitude

  const Given given_;
  ModeCounts* const counts_;
  std::vector<int> left_;  // who survives
  std::map<std::size_t, Moved> moved_;
};

}  // namespace riffle::sim
