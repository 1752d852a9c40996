// ModeParticipant: the calls of one communicator, as the agreement on their mode sees them
// (sync_agreement.h). Calls are numbered from 0, alike on all nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plugin/collective/base/sync_mode.h"
#include "topology/base/status.h"

namespace riffle {

// What a node tells at the end of a replanning interval, or a subtree of nodes together.
struct SyncReport {
  std::uint64_t nodes = 1;
  // The digest of the repeating sequence of calls; 0: some node knows none, or they differ.
  std::uint64_t layout = 0;
  std::uint64_t steady_steps = 0;   // the least
  std::uint64_t relaxed_nodes = 0;  // on which a relaxed mode runs, or is going to
  // Since it began: calls that a node kept out of as it was not sure of them, and calls in
  // whose group digests did not match.
  std::uint64_t doubts = 0, mismatches = 0;
  std::string why;  // one node's reason for a doubt, or for not knowing the sequence

  void add(const SyncReport& other) {
    nodes += other.nodes;
    if (layout != other.layout) {
      if (layout != 0 && other.layout != 0) why = "the nodes' calls differ";
      layout = 0;
    }
    steady_steps = std::min(steady_steps, other.steady_steps);
    relaxed_nodes += other.relaxed_nodes;
    doubts += other.doubts;
    mismatches += other.mismatches;
    if (why.empty()) why = other.why;
  }
};

// How the sparse mode runs: by the planner of node 0, the same everywhere.
struct SparseOrder {
  std::uint64_t teams = 1;
  bool is_recursive = false;           // across teams (sparse/schedule.h)
  std::vector<std::uint64_t> node_at;  // by position of the schedule
  std::vector<std::uint8_t>
      is_sparse;       // by position in the sequence of calls; the others are exact
  std::string reason;  // node 0's, human-readable; does not travel
  bool operator==(const SparseOrder&) const = default;
};

// Node 0's wish: the mode from some call on.
struct ModeOrder {
  SyncMode mode = SyncMode::kExact;
  std::uint64_t layout = 0;       // what every node must know the calls as; 0 for exact
  std::uint64_t chunk_bytes = 0;  // that relaxed calls are cut into; 0: as the engine is set
  SparseOrder sparse;             // of kSparse
};

std::vector<std::uint8_t> encode(const ModeOrder& order);
Result<ModeOrder> decode_mode_order(const std::vector<std::uint8_t>& bytes);

// Of the mode that began last: the calls that were agreed upon as its beginning and as its end.
struct ModeSpan {
  static constexpr std::uint64_t kNone = ~0ull;
  std::uint64_t begin = kNone, end = kNone;
  bool operator==(const ModeSpan&) const = default;
};

class ModeParticipant {
 public:
  virtual ~ModeParticipant() = default;
  // All on the progress thread, but make(), which runs in the Background.
  virtual SyncReport report() = 0;
  // What the order needs; its answer, called on the progress thread, makes that what is prepared,
  // in place of what was before. An error: this node cannot.
  using Take = std::function<void()>;
  virtual Result<Take> make(const ModeOrder& order) = 0;
  // No call from the returned number on is taken until use() or drop(). It lies some `horizon_ns`
  // ahead.
  virtual std::uint64_t hold(std::uint64_t now_ns, std::uint64_t horizon_ns) = 0;
  // What was prepared holds from the first step on that begins at this call or later.
  virtual void use(std::uint64_t call) = 0;
  virtual void drop() = 0;

  // Where nodes may be lost (survivors.h): what this node knows to be decided.
  virtual ModeSpan span() = 0;
  // The survivors' latest: what any of them knows to be decided holds here too, all else that was
  // under way is dropped. From now on this node is number `place` of so many. An error: it has not
  // prepared what the others have begun.
  virtual Status catch_up(const ModeSpan& span, int place, int nodes) = 0;
};

}  // namespace riffle
