// Recording: feeds one communicator's record (plugin/telemetry/comm_record.h) from its mesh and
// session, and its trace (comm_trace.h) where RIFFLE_TRACE asks for one. Exists only where
// RIFFLE_RECORD is set; nothing is counted otherwise.
//
// Threads: the reactor's, but for begin(), flush() and the destructor, which come before the first
// and after the last call of the reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "plugin/collective/adapt/replan_event.h"
#include "plugin/collective/base/plan_basis.h"
#include "plugin/collective/base/shadow_settings.h"
#include "plugin/collective/connect/messages.h"
#include "plugin/collective/engine/trace_options.h"
#include "plugin/telemetry/comm_record.h"
#include "plugin/telemetry/comm_trace.h"
#include "plugin/transport/base/transport.h"
#include "plugin/transport/reactor/reactor.h"

namespace riffle {

class Recording final : public ReplanObserver {
 public:
  // Null where nothing is recorded. `comm_id` is the same on all nodes.
  static std::unique_ptr<Recording> begin(const RecordOptions& options, TimerService* timers,
                                          std::uint64_t comm_id, int rank, int size,
                                          const ShadowSettings& shadow);
  ~Recording() override;
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The engine's; it counts into them as long as it lives.
  CommCounters* counters() { return &record_->counters(); }
  // Likewise.
  TraceOptions trace() const;

  // What samples ask for the totals of relaxed modes, until end().
  void watch(std::function<RelaxedTotals()> relaxed) { relaxed_ = std::move(relaxed); }

  // `basis`: what node 0 planned on, null on the others.
  void planned(const Verdict& verdict, const PlanBasis* basis);
  // Connect is over; if it went well the links are sampled from now on. The mesh must live until
  // end().
  void connected(const Status& outcome, TransportMesh* mesh);
  void failed(const std::string& why);
  // `what`: a human-readable line.
  void survived(const LossRecord& loss, const std::string& what);
  // Node 0: changes of the plan.
  void on_replan(const ReplanEvent& event) override;
  // The last sample.
  void end();
  void flush();

 private:
  Recording(TimerService* timers, std::unique_ptr<CommRecord> record,
            std::unique_ptr<CommTrace> trace, std::string shadow_rule);
  void trace_event(const char* kind, const std::string& name, const std::string& why);
  void sample();
  void schedule();

  TimerService* const timers_;
  const std::unique_ptr<CommRecord> record_;
  const std::unique_ptr<CommTrace> trace_;  // null: nothing is traced
  const std::string shadow_rule_;           // in words
  std::function<RelaxedTotals()> relaxed_;
  TransportMesh* mesh_ = nullptr;
  std::uint64_t timer_ = 0;
  bool has_timer_ = false;
};

}  // namespace riffle
