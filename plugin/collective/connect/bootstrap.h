// Bootstrap: how N nodes become a communicator with one outcome for all.
//
// Along a binary tree (parent of r: (r-1)/2): reports go up, node 0 decides, its verdict goes down;
// every node installs the plan and opens a link to every other; agreements go up, the final one
// down. O(log N) steps. A problem anywhere travels the same way, so all nodes return the same
// sentence, naming its cause.
//
// Timeout attribution. All nodes run out of time at once, and most of them wait for a node that
// waits itself: "nothing came from my child" says nothing about the child. So shortly before the
// deadline every node asks its neighbours in the tree for a sign of life (call_roll), which they
// give whatever they wait for. At the deadline a node that has a neighbour that gave none names it
// (expire), and the tree carries the sentence to the others, which wait a little for it (give_up).
// A lost node has a neighbour among the others, unless no other is left; one that only some node
// further away does not reach is named last.
//
// In-doubt outcome. A node that has agreed may not fail alone: node 0 may have decided that all is
// well, and others may work already. So when it sees a problem (its parent is lost, say) it asks
// all nodes. One that knows the outcome tells it; one that has not agreed fails, and with that no
// node can succeed; one that has agreed and knows no more than the asker says so, and from then on
// takes no decision out of the tree, for the asker may be about to give up: it asks all nodes too.
// If none that is left knows, the decision is lost and all fail alike. Only where some do not reach
// each other may a node fail that others have succeeded with (failed_after_agreeing).
//
// Threads: the mesh's owner. The caller owns the clock.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/connect/messages.h"
#include "topology/plan/group_plan.h"

namespace riffle {

struct BootstrapSteps {
  // Node 0, before decide: may take its time (probing), then calls go_on once. Null: nothing to do.
  std::function<void(const std::vector<NodeReport>&, std::function<void()> go_on)> prepare;
  // Node 0: from all reports, in rank order, to the verdict.
  std::function<Verdict(const std::vector<NodeReport>&)> decide;
  // Every node: takes the plan; an error becomes that of all nodes.
  std::function<Status(const PlanSet&, const Verdict&)> install;
  // Every node, once: the outcome. `fallback_reason` is not empty if all nodes fall back to NCCL;
  // the status is then ok, but nothing is installed.
  std::function<void(Status, const std::string& fallback_reason)> finished;
};

class Bootstrap {
 public:
  Bootstrap(Mesh* mesh, NodeReport own, BootstrapSteps steps);

  void start();
  void opened(int peer);
  void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message);
  // A neighbour in the tree is gone, or something else makes success impossible. Not certain to end
  // connect here and now (in-doubt outcome).
  void fail(const std::string& problem);
  // Nothing more comes from this peer: it is lost, or has closed its communicator.
  void gone(int peer);
  // In this order: some time before the deadline, at the deadline, and some time later.
  void call_roll();
  void expire();
  void give_up();
  bool is_over() const { return phase_ == Phase::kOver; }
  // Does the tree tell us directly what became of it? Of all others we hear by our neighbours.
  bool is_neighbour(int peer) const;
  // A neighbour has not connected yet: a node that ended now would look lost to it, and it would
  // name this node in place of the cause.
  bool expects_neighbour() const;
  // A peer closed its communicator: may connect still end well? It may if the peer has heard how it
  // ends and we have not: the decision, or a verdict to fall back to NCCL, which is still on its
  // way down to us. A neighbour tells us what it knows before it leaves.
  bool may_have_left(int peer) const { return has_agreed() || !is_neighbour(peer); }
  // It failed here after this node had agreed, so that others may have succeeded: tell them.
  bool failed_after_agreeing() const { return failed_after_agreeing_; }
  void set_channel(ControlChannel* channel) { channel_ = channel; }

 private:
  enum class Phase { kReports, kPreparing, kVerdict, kLinks, kAgreement, kDecision, kOver };
  enum Kind : std::uint32_t {
    kReport = 1,
    kVerdict = 2,
    kUp = 3,
    kDown = 4,
    kAsk = 5,      // without a problem: are you there? With one: how does connect end?
    kHere = 6,     // the answer of a node that does not know
    kOutcome = 7,  // ... of one that does
  };

  bool is_root() const;
  int parent() const;
  // This node has agreed and waits for the others' decision: a peer may have succeeded already.
  bool has_agreed() const { return phase_ == Phase::kDecision && problem_.empty(); }
  std::vector<int> neighbours() const;
  void send(int peer, Kind kind, const std::string& problem);
  void to_all(Kind kind, const std::string& problem);
  void to_children(Kind kind, const std::vector<std::uint8_t>& message);
  void asked(int peer, const std::vector<std::uint8_t>& message);
  void answered(int peer, Kind kind, const std::vector<std::uint8_t>& message);
  void check_answers();
  void fail_for_good(const std::string& problem);
  void on_reports(int peer, const std::vector<std::uint8_t>& message);
  void reports_complete();
  void decide();
  void take_verdict(const std::vector<std::uint8_t>& message);
  void check_links();
  void check_agreement();
  void finish(const std::string& problem);
  std::string missing() const;
  std::string attribute_timeout() const;

  Mesh* mesh_;
  ControlChannel* channel_ = nullptr;
  BootstrapSteps steps_;
  Phase phase_ = Phase::kReports;
  std::vector<int> children_;
  std::vector<NodeReport> reports_;  // of our subtree
  std::vector<bool> link_is_open_;
  int closed_links_ = 0;  // entries of link_is_open_ that are false
  std::vector<bool> child_reported_, child_agreed_;
  std::string problem_;     // first one known here
  std::vector<bool> gone_;  // by peer
  std::vector<bool> here_;  // gave a sign of life, or, in doubt, said that it knows no outcome
  std::string in_doubt_because_;  // not empty: we ask all nodes
  bool has_fallen_back_ = false;  // the outcome
  bool failed_after_agreeing_ = false;
};

}  // namespace riffle
