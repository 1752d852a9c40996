// PlanSwitch: how all nodes change to another plan at the same chunk, without a stop.
//
// Along the binary tree of connect (parent of r: (r-1)/2), O(log N) steps:
//   1. down: node 0's plan. Every node makes a generation of it (engine.h), off the hot path.
//   2. up: "prepared". A node that has prepared, and whose subtree has, promises to start no chunk
//      from c = (its next chunk) + (horizon) on until it hears the decision, and reports the
//      largest c of its subtree. The horizon is what the node would start in several rounds of the
//      tree, so that no node ever reaches it.
//   3. down: node 0 decides S = max c. No node i has started S, for it started only chunks below
//      c_i <= S; every node has the plan. Chunks from S on use it.
// A node that cannot take the plan says why instead; the decision then is that nothing changes.
// Frames of the new plan may overtake the decision: they name their generation (wire.h).
//
// A node that closes while this runs is no obstacle: node 0 then tells all nodes its decision
// directly, and "nothing changes" if it had none. Chunk c is not needed any more if node 0 closes
// undecided: a node closes when its collectives are over, so all their chunks have begun
// everywhere. A lost node ends the communicator, and this with it.
//
// The same agreement serves whatever all nodes change at one number of a sequence they share: also
// the mode of the calls (sync_agreement.h), whose numbers are those of the calls. It then has
// message kinds of its own.
//
// Threads: the mesh's owner. Messages of one peer must arrive in order (control_channel.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

class PlanSwitch {
 public:
  // The kinds of its messages are three from the first; others belong to connect and to the
  // replanning intervals.
  static constexpr std::uint32_t kPlanKinds = 20, kModeKinds = 23;
  bool is_mine(std::uint32_t kind) const { return kind >= first_kind_ && kind < first_kind_ + 3; }

  struct Order {
    std::vector<std::uint8_t> plans;  // encoded PlanSet, or ModeOrder
    std::uint64_t digest = 0;         // of it
    std::uint64_t horizon_ns = 0;
  };
  struct Steps {
    int number = -1;  // of this node in the job, for messages; -1: its rank
    std::function<void(int peer, std::uint32_t kind, std::vector<std::uint8_t> message)> send;
    // Makes and prepares the plan; calls back once, now or later, on the owner's thread.
    std::function<void(const Order& order, std::function<void(Status)> prepared)> prepare;
    // Holds the engine before a chunk some `horizon_ns` ahead, which it returns.
    std::function<std::uint64_t(std::uint64_t horizon_ns)> hold;
    std::function<void(std::uint64_t seq)> use;  // the prepared plan, from this chunk on
    std::function<void()> drop;                  // ... or not at all
    // Node 0: the decision. An error says which node could not take the plan, and why.
    std::function<void(Result<std::uint64_t> first_seq)> decided;
  };

  PlanSwitch(int rank, int size, Steps steps, std::uint32_t first_kind = kPlanKinds);

  // Node 0; one at a time.
  void begin(const Order& order);
  bool is_running() const { return phase_ != Phase::kIdle; }
  // Not ok: the peer does not speak our language.
  Status received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message);
  // The peer closed; nothing more comes from it.
  void departed(int peer);

 private:
  enum class Phase { kIdle, kPreparing, kPromised };
  struct Decision {
    std::uint64_t attempt = 0;
    bool is_on = false;
    std::uint64_t seq = 0;
  };

  bool is_root() const { return rank_ == 0; }
  int parent() const { return (rank_ - 1) / 2; }
  void take_order(const Order& order);
  void own_prepared(std::uint64_t attempt, const Status& status);
  void report_if_complete();
  void take_decision(const Decision& decision);
  void tell_all(const Decision& decision);
  void decide(bool is_on);
  std::vector<int> children() const;
  bool can_begin_at(std::uint64_t seq) const;

  std::uint32_t prepare_kind() const { return first_kind_; }
  std::uint32_t prepared_kind() const { return first_kind_ + 1; }
  std::uint32_t decision_kind() const { return first_kind_ + 2; }

  const int rank_, size_;
  const Steps steps_;
  const std::uint32_t first_kind_;
  Phase phase_ = Phase::kIdle;
  std::uint64_t attempt_ = 0;
  std::uint64_t horizon_ns_ = 0;
  bool own_is_prepared_ = false;
  std::vector<int> missing_;  // children that have not reported
  std::uint64_t subtree_seq_ = 0;
  std::string problem_;
  Decision last_;  // node 0
  bool has_departures_ = false;
};

}  // namespace riffle
