// A job in one process, whose all-reduces go through RelaxedCalls and whose sessions agree on a
// mode, on a network that reorders every frame; time is moved by hand. What kind of job it is says
// the class made of it: what calls hold and what they should have given.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lab/memory/memory_network.h"
#include "test/manual_clock.h"
#include "test/modes/expectations.h"
#include "test/modes/job_call.h"
#include "test/modes/job_node.h"

namespace riffle::testing {

class MemoryJob {
 public:
  MemoryJob(const MemoryJob&) = delete;
  MemoryJob& operator=(const MemoryJob&) = delete;
  virtual ~MemoryJob();

  // Runs so many steps of the job; the first wrong thing, or empty.
  std::string run(int steps);
  // The calls of a later step may be others.
  void change_calls(std::vector<JobCall> calls) {
    calls_before_ = number(steps_begun_, 0);
    changed_in_ = steps_begun_;
    calls_ = std::move(calls);
  }

  void kill(int r) { network_.kill(r); }
  FrameSink* sink(int r) { return node(r).session->sink(); }
  const RelaxedCounts& counts(int r) const { return node(r).calls->counts(); }
  RelaxedTotals totals(int r) const { return node(r).calls->counts().totals(); }
  bool owes(int r) const { return node(r).calls->owing() != nullptr; }
  RelaxedRun* relaxed_run(int r) { return node(r).calls->run(); }
  std::uint64_t steps() const { return steps_begun_; }

  // Faults: calls (node, step, call of the step) whose identity is lost, or that hold an infinity.
  std::set<std::tuple<int, std::uint64_t, std::size_t>> lost, not_finite;
  std::vector<ModeChange> changes;
  std::string failure;

 protected:
  struct Outcome {  // of one call on all nodes, kept until every node is done
    explicit Outcome(std::size_t nodes)
        : input(nodes), output(nodes), took_part(nodes, true), brings(nodes, false) {}
    JobCall call;
    int done = 0;
    int staged = 0;
    std::vector<std::vector<float>> input, output;  // by node
    std::vector<bool> took_part;
    std::vector<bool> brings;  // a background round's result
    std::vector<Numbers> valid(const std::vector<std::vector<float>>& all) const;
  };

  MemoryJob(const JobSetup& setup, std::uint64_t seed, std::vector<JobCall> calls);
  // When plans_ and the nodes' options and hooks are as the job wants them.
  void connect();

  // Gradients of node r; all of what the call holds is random before. By default a few values are
  // far larger than the others, and of what is stale some is no number.
  virtual void draw(int r, const JobCall& call, std::mt19937* values,
                    std::vector<float>* data) const;
  // The same on every node, but for the fault's node.
  virtual CallIdentity identity_of(int r, std::uint64_t step, std::size_t index) const;
  // One call that ran the same way on all nodes, in the order of the calls: what is wrong, or
  // empty.
  virtual std::string check(std::uint64_t step, std::size_t index, const Outcome& outcome) = 0;
  // When all calls so far are over.
  virtual std::string check_nodes() { return ""; }

  JobNode& node(int r) { return nodes_[r]->job; }
  const JobNode& node(int r) const { return nodes_[r]->job; }
  int size() const { return setup_.nodes; }
  const std::vector<JobCall>& calls() const { return calls_; }
  // Of a call, counted from the job's first one on. Not for calls before the last change.
  std::uint64_t number(std::uint64_t step, std::size_t index) const {
    return calls_before_ + (step - changed_in_) * calls_.size() + index;
  }

  PlanSet plans_;

 private:
  class Watcher final : public ReplanObserver {
   public:
    explicit Watcher(std::vector<ModeChange>* changes) : changes_(changes) {}
    void on_replan(const ReplanEvent& e) override;

   private:
    std::vector<ModeChange>* changes_;
  };
  struct Node {
    Node(int r, const JobSetup& setup, const PlanSet* plans, Mesh& inner, const ManualClock& clock)
        : mesh(inner, clock), job(r, setup, plans) {
      job.options.background = &background;
    }
    ClockMesh mesh;
    InlineBackground background;
    JobNode job;
  };

  std::vector<std::byte> input_of(int r, std::uint64_t step, std::size_t index) const;
  std::vector<float> floats(const std::vector<std::byte>& bytes) const;
  void post(int r);
  std::string take_results(int r);
  std::string check_all();

  const JobSetup setup_;
  std::vector<JobCall> calls_;
  std::mt19937_64 random_;
  ManualClock clock_;
  MemoryNetwork network_;
  Watcher watcher_{&changes};
  std::vector<std::unique_ptr<Node>> nodes_;
  int connected_ = 0;
  std::uint64_t steps_begun_ = 0;
  std::uint64_t calls_before_ = 0, changed_in_ = 0;  // the step since which the calls are these
  std::map<std::pair<std::uint64_t, std::size_t>, Outcome> outcomes_;
};

}  // namespace riffle::testing
