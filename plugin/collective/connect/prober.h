// Prober: active probing of the network while a communicator connects.
//
// Node 0 runs a survey (topology/probe/survey.h). Every round is an order that goes down the
// bootstrap tree; every node carries out its flows (probe_flows.h); when they have ended, and those
// of its subtree too, what was counted goes up. Only then comes the next order, so rounds never
// meet. The first order has no flows: it opens all links. Two messages per node and round, which
// name the flows of the subtree only: O(N log N) bytes per round.
//
// Two probes at once on one machine would measure each other. So every node takes its machine's
// turn (ProbeTurns) with the first order. If one of them is taken, all give theirs back,
// and node 0 tries again some time later, itself first, until its patience ends: no node waits
// while it holds a turn, so none waits for ever.
//
// Probing never makes connect fail: it has a budget of time, and whatever goes wrong (a mangled
// message, a silent node) only means that node 0 goes on with less, or nothing, known. A lost node
// ends connect anyway.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "plugin/collective/base/frames.h"
#include "plugin/collective/connect/probe_flows.h"
#include "plugin/transport/base/timer_service.h"
#include "topology/probe/survey.h"

namespace riffle {

struct ProbeOutcome {
  probe::Findings findings;
  std::vector<probe::Observed> observed;  // what they were concluded from
  std::string trouble;  // not empty: cut short, and why; the findings may still be complete
  std::uint64_t time_ns = 0;
  std::uint64_t bytes = 0;  // payload that arrived
};

struct ProbeTurns {
  // Every node: the turn, without waiting; null: another communicator has it.
  std::function<std::shared_ptr<void>()> take;
  // Node 0, after it waited: is there nothing left to find out?
  std::function<bool()> is_needless;
};

class Prober final : public FrameHandler {
 public:
  static constexpr std::uint32_t kRoundUs = 50'000;
  static constexpr std::uint32_t kMostFlowBytes = 16u << 20;

  // Without turns nodes just begin.
  Prober(Mesh* mesh, TimerService* timers, ProbeTurns turns = {});
  ~Prober() override;
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // What a survey of so many nodes may take; connect's own deadline is the caller's business.
  static std::uint64_t budget_ns(int nodes);

  // Node 0, once: `done` gets what was found, at the latest when first `patience_ns`, for our turn,
  // and then `budget_ns` are spent. `known`: of the racks, before.
  void survey(probe::KnownRacks known, std::uint64_t patience_ns, std::uint64_t budget_ns,
              std::function<void(const ProbeOutcome&)> done);
  // Connect goes on, or is over: nothing more is started or reported.
  void stop();

  // A link opened: as in FrameSink.
  void opened(int peer);
  // kProbe.
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;

 private:
  using Message = std::vector<std::uint8_t>;
  bool is_root() const;
  int parent() const;
  void send(int peer, ProbeFrame::Step step, std::uint32_t number, const Message& message);
  void take_message(int peer, const ProbeFrame& frame, const Message& message);
  void carry_out(const ProbeOrder& order);
  void report_if_complete();
  void try_turn();
  void give_way();
  void begin_rounds();
  void set_limit(std::uint64_t when_ns);
  int rounds_left() const;
  void next_round();
  void take_samples();
  void end_round();
  void finish(const std::string& trouble);

  Mesh* mesh_;
  TimerService* timers_;
  ProbeFlows flows_;
  std::vector<int> children_;
  std::vector<bool> link_is_open_;
  bool stopped_ = false;

  ProbeTurns turns_;
  std::shared_ptr<void> turn_;  // null: not ours
  bool is_busy_ = false;        // another communicator has it, here or below

  ProbeOrder order_;  // the current one; number 0: none yet
  bool own_part_over_ = false;
  int children_missing_ = 0;
  std::vector<ProbeReport::Entry> entries_;  // of our subtree

  std::list<Message> incoming_;                            // being received
  std::list<std::pair<std::uint64_t, Message>> outgoing_;  // by cookie, until sent
  std::uint64_t next_cookie_ = 0;

  // Node 0.
  std::unique_ptr<probe::Survey> survey_;
  std::function<void(const ProbeOutcome&)> done_;
  std::uint64_t begin_ns_ = 0, bytes_ = 0, budget_ns_ = 0, timer_ = 0, retry_ = 0;
  bool has_timer_ = false, has_retry_ = false;
  bool is_waiting_ = false;  // for a turn, and had none at the first try
};

}  // namespace riffle
