// One node of a job that a test runs in one process: it posts the calls of its step, one after the
// other and step after step, through RelaxedCalls; what is not staged runs exactly. The network,
// what is in the calls and what must come out of them are the affair of the job.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/collective/relaxed/relaxed_calls.h"
#include "plugin/collective/session.h"
#include "plugin/kernels/types.h"
#include "topology/fabric/fabric.h"
#include "topology/plan/group_plan.h"

namespace riffle::testing {

// The same on all nodes.
struct JobSetup {
  int nodes = 0;
  std::int64_t rate_kbps = 0;  // of every node
  SyncSettings settings;
  DataType type = DataType::kFloat32;
  std::size_t piece_bytes = 0, chunk_bytes = 0;  // of the engine
  std::optional<Fabric> network = {};            // of `nodes` nodes; else all are equal
  Fabric fabric() const { return network.value_or(even_fabric(nodes, rate_kbps)); }
  PlanSet exact_plans() const;
};

// A call from before it is posted until it is over.
struct PostedCall {
  std::uint64_t step = 0;
  std::size_t index = 0;                    // of the calls of a step
  std::vector<std::byte> send, recv, kept;  // send: empty if in place; kept: StagedCall::kept
  StagedCall staged;
  bool is_staged = false;
  std::shared_ptr<RelaxedRun> run;   // the mode that staged it, also when it is over
  std::unique_ptr<Operation> exact;  // if it is not staged
  const std::byte* data() const { return send.empty() ? recv.data() : send.data(); }
};

class JobNode {
 public:
  // `plans`: what node 0 begins with; must outlive the node.
  JobNode(int rank, const JobSetup& setup, const PlanSet* plans);

  // The session is made with these: jobs add to them what is their own, a background before all.
  SessionOptions options;
  SessionHooks hooks;
  void make_session(TimerService* timers);
  void start(Mesh* mesh);

  // The call to post next; true: it is new, and has no memory yet.
  bool prepare();
  // Posts it. False: refused for now. Else it is the last one of `running`, and the next of the
  // step's calls is up.
  bool post(const CallIdentity& identity, std::size_t calls_of_step);
  // Of one that is running. An error: it has failed.
  Result<bool> is_over(PostedCall* call);

  const int rank;
  std::unique_ptr<RelaxedCalls> calls;
  std::unique_ptr<Session> session;
  std::function<void(Operation*)> on_post;  // sees what a mode posts; may be null
  std::uint64_t posted = 0;                 // calls so far
  std::uint64_t step = 0;                   // of the next call
  std::size_t index = 0;
  std::unique_ptr<PostedCall> next;
  std::deque<std::unique_ptr<PostedCall>> running;

 private:
  const JobSetup setup_;
  CallIdentity identity_;  // of the call that is offered
};

}  // namespace riffle::testing
