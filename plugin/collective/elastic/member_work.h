// MemberWork: what a set of nodes works with, over one mesh: the engine, the sparse runner where
// that mode is wanted, and replanning. It brings their frames, their messages and their operations
// together.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/collective/base/background.h"
#include "plugin/collective/base/control_channel.h"
#include "plugin/collective/base/frames.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/collective/threads/threaded_engine.h"
#include "plugin/transport/base/timer_service.h"

namespace riffle {

class MemberWork final : public FrameHandler {
 public:
  struct Options {
    EngineOptions engine;
    ReplanOptions replan;
    std::optional<SparseRunner::Options> sparse;  // where the sparse mode is wanted
    std::vector<MeshPart*> parts;                 // where several threads share the work
  };
  // A peer's frame turned out not to fit after it had been accepted.
  using Violation = std::function<void(int peer, const Status& why)>;

  // All must outlive this; `background` may be null only where nothing is replanned.
  MemberWork(Mesh* mesh, ControlChannel* control, TimerService* timers, Background* background,
             const Options& options, ReplanHooks hooks, const Violation& violation);

  Status install(const PlanSet& plans, bool knows_lengths);
  // The nodes have installed it; node 0 gives the plans and what they were made for.
  void start(const PlanSet& plans, const PlanBasis& basis) { replanner_.start(plans, basis); }

  void submit(Operation* operation);
  // A sparse segment; `operation` tells when it is over.
  void submit(SparseSegment* segment, Operation* operation);

  // kData, kCredit, kLength and kSparse.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;

  // Messages of replanning.
  bool is_mine(std::uint32_t kind) const { return replanner_.is_mine(kind); }
  Status received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
    return replanner_.received(peer, kind, message);
  }
  void departed(int peer) { replanner_.departed(peer); }
  // On another plan, or on a mode; this node may have promised something.
  bool is_agreeing() const { return replanner_.is_agreeing(); }

  bool is_idle() const { return engine_.is_idle() && (!sparse_ || sparse_->is_idle()); }
  // Where it is not idle.
  std::vector<int> waits_for() const {
    return engine_.is_idle() ? sparse_->waits_for() : engine_.waits_for();
  }
  // Has anything moved since the last call that the mesh's owner did not see?
  bool take_moved() const { return engine_.take_moved(); }
  bool has_failed() const { return engine_.has_failed(); }
  // The job makes no more calls; to be called before fail().
  void job_ended() { replanner_.job_ended(); }
  // Every operation fails, nothing is replanned any more.
  void fail();

 private:
  ThreadedEngine engine_;
  const std::unique_ptr<SparseRunner> sparse_;  // null: no sparse mode is wanted
  Replanner replanner_;
};

}  // namespace riffle
