// Session: the protocol of one communicator on one node: connect (bootstrap.h), the engine, and
// what happens when a node is lost or leaves. It knows a mesh and timers, nothing of threads or
// sockets, so that the same code runs over TCP (communicator.h) and in simulated time
// (lab/simulation).
//
// Failure: the first problem (a lost peer, a frame that does not fit, a node that left while we
// need it) fails every operation, is reported once and told to all peers, so that every survivor
// hears of it. With SessionOptions::survivors the others go on where nodes are lost (members.h);
// what breaks the protocol is still a failure of all nodes, and so is a loss during connect.
//
// End: a node whose operations are over says goodbye and closes. If some are under way that the job
// does not wait for (rounds of shadow_sync, which slower nodes have yet to begin) its close is
// deferred until they are over, for the peer timeout at the most; from then on nothing that goes
// wrong is reported here.
//
// Own failure: what this node's own work throws (bad_alloc, a broken invariant) reaches its owner,
// from the mesh by SessionHooks::broke, and the owner calls abort().
//
// Threads: one, the mesh's owner.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/collective/connect/bootstrap.h"
#include "plugin/collective/connect/prober.h"
#include "plugin/collective/elastic/members.h"
#include "plugin/collective/elastic/stall_watch.h"
#include "plugin/collective/elastic/survivor_options.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/transport/base/mesh_part.h"
#include "plugin/transport/base/timer_service.h"

namespace riffle {

struct SessionOptions {
  EngineOptions engine;
  ReplanOptions replan;
  SurvivorOptions survivors;
  std::optional<SparseRunner::Options> sparse;  // where the sparse mode is wanted
  Background* background = nullptr;  // needed by replanning intervals; must outlive the session
  std::uint64_t connect_timeout_ns = 60'000'000'000;
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  std::uint64_t stall_ns = 0;  // RIFFLE_STALL_S (elastic/stall_watch.h); 0: it is no error
  // Without `stall_ns`: after so long a line in the log tells of it; 0: never.
  std::uint64_t stall_warning_ns = 0;
};

struct SessionHooks {
  // Node 0, before `decide`: shall the network be probed first? `known`: of the racks,
  // before. Null: never.
  std::function<bool(const std::vector<NodeReport>&, probe::KnownRacks* known)> wants_probe;
  // Every node: its machine's turn to probe (prober.h). Null: there are no turns.
  std::function<std::shared_ptr<void>()> probe_turn;
  // Node 0, after it waited for its turn: is the network known meanwhile? Null: it is not.
  std::function<bool(const std::vector<NodeReport>&)> knows_network;
  // Node 0: what probing found (nothing, in no rounds, if its turn never came); `decide` follows.
  std::function<void(const std::vector<NodeReport>&, const ProbeOutcome&)> probed;
  // Node 0: from all reports, in rank order, to the verdict.
  std::function<Verdict(const std::vector<NodeReport>&)> decide;
  // Every node: it is about to install the verdict's plan.
  std::function<void(const Verdict&)> planned;
  // Node 0, after `planned`: what the plan was made for. Needed by replanning intervals.
  std::function<PlanBasis()> basis;
  ReplanHooks replan;
  // Every node, once: connect's outcome, the same everywhere. As BootstrapSteps::finished.
  std::function<void(Status, const std::string& fallback_reason)> connected;
  // At most once, before the operations fail: what went wrong, human-readable.
  std::function<void(const std::string& why)> failed;
  // This node's own work threw within the mesh; the owner is to call abort(). Null: the session
  // does.
  std::function<void(const Status& why)> broke;
  // Nodes were lost and the others go on; which, why and how many, human-readable.
  std::function<void(const LossRecord& loss, const std::string& what)> went_on;
};

class Session final : private FrameSink {
 public:
  // Time for the news of a fault to leave before this node fails and the job, perhaps, ends.
  static constexpr std::uint64_t kTellNs = 50'000'000;

  Session(int rank, int size, SessionOptions options, TimerService* timers, SessionHooks hooks);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Where the mesh delivers; it must be there from before the mesh until after it.
  FrameSink* sink() { return this; }
  // Connects. `mesh` and its parts must outlive their use here, which ends with end(). Once.
  void start(Mesh* mesh, NodeReport report, std::vector<MeshPart*> parts = {});
  // Queues an operation (engine.h, or sparse_runner.h where it says so). After a failure it fails
  // at once.
  void submit(Operation* operation);
  // Ends everything now: the peers hear `fault`, our own operations fail because of `why`, or
  // connect does.
  void abort(const std::string& fault, const std::string& why);
  // The last resort where that throws: operations fail, nothing is told.
  void fail_operations();
  // From start() until the outcome of connect is known.
  bool is_connecting() const { return bootstrap_ && !bootstrap_->is_over(); }
  // How others know this node.
  std::string own_name() const { return name_of(rank_); }
  // The job has no more use for this communicator, and waits for none of the operations that are
  // under way. True: its close is deferred, and `over` is called, once, when it is time for end().
  // Within `over` the session may be destroyed. False: it is time now.
  bool retire(std::function<void()> over);
  // The last call: no timer runs any more, operations still running fail. True if the mesh may say
  // goodbye, false if it ends in the middle of something and must abort.
  bool end();

  bool has_failed() const { return members_ && members_->has_failed(); }
  // The nodes that work together. From start() on.
  const Membership& membership() const { return members_->membership(); }

 private:
  void opened(int peer) override;
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;
  void departed(int peer) override;
  void lost(int peer, const Status& why) override;
  void failed(const Status& why) override;

  FrameHandler* handler_of(const FrameHeader& header) const;
  FrameHandler& handler_of(std::uint64_t cookie) const;
  void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message);
  std::unique_ptr<Members> make_members(std::vector<MeshPart*> parts);
  void violated(int peer, const Status& why);
  void connect_at(std::uint64_t when_ns, void (Bootstrap::*step)());
  void connect_lost(int peer, const std::string& sentence);
  void prepare(const std::vector<NodeReport>& reports, std::function<void()> go_on);
  Status install(const PlanSet& plans, const Verdict& verdict);
  void finish_connect(Status outcome, const std::string& fallback_reason);
  void fail(const std::string& why);
  void fail_soon(const std::string& why);
  StallWatch::Hooks stall_hooks();
  void stalled(int node, const std::vector<int>& whom);
  void tell_all(const std::string& why);
  void spread(const std::string& fault, const std::string& why);
  bool is_retired() const { return static_cast<bool>(over_); }
  void end_if_not_needed();
  void no_longer_needed();
  void call_over_at(std::uint64_t when_ns);
  const std::string& name_of(int peer) const { return names_[peer]; }
  void cancel_connect_timers();
  void cancel_timers();

  const int rank_, size_;
  const SessionOptions options_;
  TimerService* const timers_;
  const SessionHooks hooks_;
  std::vector<std::string> names_;  // of the nodes, for messages

  Mesh* mesh_ = nullptr;
  std::unique_ptr<ControlChannel> control_;
  std::unique_ptr<Bootstrap> bootstrap_;
  std::unique_ptr<Prober> prober_;
  std::vector<NodeReport> reports_;  // node 0, while it probes
  std::unique_ptr<Members> members_;
  std::optional<StallWatch> stall_watch_;              // from start() on
  std::array<FrameHandler*, kFrameTypes> handlers_{};  // by frame type; null: refused
  struct Early {
    int peer;
    std::uint32_t kind;
    std::vector<std::uint8_t> message;
  };
  std::vector<Early> early_;  // to members_, before connect was over here
  // What went wrong before connect was over here, should it end well.
  std::vector<std::function<void()>> after_connect_;
  std::vector<std::uint64_t> connect_timers_;
  PlanSet plans_;  // node 0, until connect is over
  std::vector<bool> departed_;
  std::string cause_;  // the fault we heard of, while we pass it on
  bool is_connected_ = false;
  std::optional<std::uint64_t> fault_timer_;
  std::function<void()> over_;  // while its close is deferred
  bool is_useless_ = false;     // ... and the other nodes no longer need it
  std::optional<std::uint64_t> over_timer_;
};

}  // namespace riffle
