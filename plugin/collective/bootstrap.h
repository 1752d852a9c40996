// Bootstrap: how N nodes become a communicator with one outcome for all.
//
// Along a binary tree (parent of r: (r-1)/2): reports go up, node 0 decides, its verdict goes down;
// every node installs the plan and opens a link to every other; agreements go up, the final one
// down. O(log N) steps. A problem anywhere travels the same way, so everybody returns the same
// sentence, naming its cause. A node that is silent past the deadline is the problem of its parent,
// and a node cut off from its parent fails by its own, later, deadline.
//
// Threads: the mesh's owner. The caller owns the clock: it calls expire() when time is up.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugin/collective/control_channel.h"
#include "plugin/collective/messages.h"
#include "topology/plan/group_plan.h"

namespace riffle {

struct BootstrapSteps {
  // Node 0, before decide: may take its time (probing), then calls go_on once. Null: nothing to do.
  std::function<void(const std::vector<NodeReport>&, std::function<void()> go_on)> prepare;
  // Node 0: from all reports, in rank order, to the verdict.
  std::function<Verdict(const std::vector<NodeReport>&)> decide;
  // Every node: takes the plan; an error becomes everybody's.
  std::function<Status(const PlanSet&, const Verdict&)> install;
  // Every node, once: the outcome. `aside` is not empty if all agreed to leave the work to NCCL;
  // the status is then ok, but nothing is installed.
  std::function<void(Status, const std::string& aside)> finished;
};

class Bootstrap {
 public:
  Bootstrap(Mesh* mesh, NodeReport own, BootstrapSteps steps);

  void start();
  void opened(int peer);
  void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message);
  // A peer is gone, or something else makes success impossible.
  void fail(const std::string& problem);
  // The deadline passed: names who is missing.
  void expire();
  bool is_over() const { return phase_ == Phase::kOver; }
  // This node has agreed and waits for the others' decision: a peer may have succeeded already.
  bool has_agreed() const { return phase_ == Phase::kDecision && problem_.empty(); }
  // A peer closed its communicator: may connect still end well? It may if the peer has heard how it
  // ends and we have not: the decision, or a verdict to step aside, which is still on its way down
  // to us. The verdict comes from our parent and goes on to our children: neither leaves before.
  bool may_have_left(int peer) const;
  // It failed here after this node had agreed, so that others may have succeeded: tell them.
  bool failed_after_agreeing() const { return failed_after_agreeing_; }
  void set_channel(ControlChannel* channel) { channel_ = channel; }

 private:
  enum class Phase { kReports, kPreparing, kVerdict, kLinks, kAgreement, kDecision, kOver };
  enum Kind : std::uint32_t { kReport = 1, kVerdict = 2, kUp = 3, kDown = 4 };

  bool is_root() const { return mesh_->rank() == 0; }
  int parent() const { return (mesh_->rank() - 1) / 2; }
  void to_children(Kind kind, const std::vector<std::uint8_t>& message);
  void on_reports(int peer, const std::vector<std::uint8_t>& message);
  void reports_complete();
  void decide();
  void take_verdict(const std::vector<std::uint8_t>& message);
  void check_links();
  void check_agreement();
  void finish(const std::string& problem);
  std::string missing() const;

  Mesh* mesh_;
  ControlChannel* channel_ = nullptr;
  BootstrapSteps steps_;
  Phase phase_ = Phase::kReports;
  std::vector<int> children_;
  std::vector<NodeReport> reports_;  // of our subtree
  std::vector<bool> link_is_open_;
  int closed_links_ = 0;  // entries of link_is_open_ that are false
  std::vector<bool> child_reported_, child_agreed_;
  std::string problem_;  // first one known here
  bool failed_after_agreeing_ = false;
};

}  // namespace riffle
