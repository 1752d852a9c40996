#include "test/modes/job_node.h"

#include <utility>

#include "topology/plan/planner.h"

namespace riffle::testing {

PlanSet JobSetup::exact_plans() const { return plan(fabric(), 32 << 20, {})->plans; }

JobNode::JobNode(int own_rank, const JobSetup& setup, const PlanSet* plans)
    : rank(own_rank), setup_(setup) {
  RelaxedOptions relaxed;
  relaxed.settings = setup.settings;
  relaxed.layout.min_bytes = 256;
  relaxed.rank = rank;
  relaxed.size = setup.nodes;
  relaxed.chunk_bytes = setup.chunk_bytes;
  calls = std::make_unique<RelaxedCalls>(
      relaxed, RelaxedCalls::Hooks{[this](const CallShape&) { return identity_; },
                                   [this](Operation* op) {
                                     if (on_post) on_post(op);
                                     session->submit(op);
                                   }});
  options.engine.piece_bytes = setup.piece_bytes;
  options.engine.chunk_bytes = setup.chunk_bytes;
  options.engine.max_operations = 64 + 2 * RelaxedRun::kMaxSegments;
  options.replan.collectives = 4;
  options.replan.shortest_ns = 0;
  options.replan.burst_chunks = 4;
  options.replan.least_horizon_ns = 1'000'000;
  options.replan.mode = setup.settings.mode;
  options.replan.warmup_steps = setup.settings.warmup_steps;
  if (setup.settings.mode == SyncMode::kSparse) {
    options.sparse =
        SparseRunner::Options{.most_elements = SparseRun::most_elements(setup.chunk_bytes / 4),
                              .work = calls->sparse_work()};
  }
  hooks.decide = [plans](const std::vector<NodeReport>&) {
    Verdict v;
    v.plans = encode(*plans);
    v.digest = digest(*plans);
    return v;
  };
  hooks.basis = [this] { return PlanBasis{setup_.fabric(), false}; };
  hooks.replan.participant = calls->participant();
}

void JobNode::make_session(TimerService* timers) {
  session = std::make_unique<Session>(rank, setup_.nodes, options, timers, std::move(hooks));
}

void JobNode::start(Mesh* mesh) {
  NodeReport report;
  report.rank = rank;
  session->start(mesh, report);
}

bool JobNode::prepare() {
  if (next) return false;  // it was refused before
  next = std::make_unique<PostedCall>();
  next->step = step;
  next->index = index;
  return true;
}

bool JobNode::post(const CallIdentity& identity, std::size_t calls_of_step) {
  PostedCall& call = *next;
  identity_ = identity;
  call.staged.kept = call.kept.empty() ? nullptr : call.kept.data();
  const std::uint64_t count = call.recv.size() / size_of(setup_.type);
  const CallShape shape{1,
                        call.data(),
                        call.recv.data(),
                        count,
                        static_cast<int>(setup_.type),
                        static_cast<int>(ReduceOp::kSum)};
  const RelaxedCalls::Answer answer = calls->all_reduce(shape, &call.staged);
  if (answer == RelaxedCalls::Answer::kBusy) return false;
  ++posted;
  call.is_staged = answer == RelaxedCalls::Answer::kStaged;
  call.run = call.staged.run;
  if (!call.is_staged) {
    call.exact = std::make_unique<Operation>();
    Operation& o = *call.exact;
    o.type = setup_.type;
    o.count = count;
    o.send = call.staged.input.empty() ? call.data() : call.staged.input.data();
    o.recv = call.recv.data();
    o.kept = call.staged.kept;
    o.state = Operation::State::kRunning;
    session->submit(&o);
  }
  running.push_back(std::move(next));
  if (++index == calls_of_step) {
    index = 0;
    ++step;
  }
  return true;
}

Result<bool> JobNode::is_over(PostedCall* call) {
  if (call->is_staged) return calls->test(&call->staged);
  const Operation::State state = call->exact->state;
  if (state == Operation::State::kFailed) return internal_error("an exact call failed");
  return state == Operation::State::kDone;
}

}  // namespace riffle::testing
