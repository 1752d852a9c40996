// Member: one node of a scenario: the production session and, on top of it, what NCCL and the job
// would do: connect, post the calls in order, use a result, close.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lab/simulation/sim_background.h"
#include "lab/simulation/workload.h"
#include "plugin/transport/sim/sim_network.h"

namespace riffle::sim {

class Member final : private FrameSink, private ReplanObserver {
 public:
  // Broken promises of the session, in words; and what happens, human-readable, if it is not empty.
  using Say = std::function<void(const std::string&)>;
  // `switching`: this node hears of a change of the plan; may be empty.
  Member(SimNetwork* network, int rank, const Scenario& scenario, Workload* workload, Say broken,
         Say trace, std::function<void()> switching);
  ~Member() override;

  // Done with everything, well or not.
  bool is_over() const { return over_; }
  bool is_connected() const { return connected_; }
  // Connect's or the session's error; empty if there was none.
  const std::string& error() const { return error_; }
  std::uint64_t error_ns() const { return error_ns_; }
  std::size_t finished_calls() const { return finished_; }
  // Where nodes may be lost: those that this one worked with at last, and how often others were
  // lost.
  const std::vector<int>& side() const { return sides_.back(); }
  int losses_survived() const { return static_cast<int>(sides_.size()) - 1; }
  // Node 0: changes of the plan that all nodes agreed on, and those that came to nothing.
  int plan_changes() const { return plan_changes_; }
  int plan_changes_given_up() const { return plan_changes_given_up_; }
  std::string waiting_for() const;

 private:
  struct Posted {
    std::size_t call;
    std::vector<std::byte> send, recv, kept;
    Operation operation;
  };
  void opened(int peer) override { sink().opened(peer); }
  Result<std::byte*> get_receive_buffer(int peer, const FrameHeader& header) override {
    return sink().get_receive_buffer(peer, header);
  }
  void arrived(int peer, const FrameHeader& header, std::byte* payload) override;
  void sent(int peer, std::uint64_t cookie) override;
  void departed(int peer) override;
  void lost(int peer, const Status& why) override;
  void on_replan(const ReplanEvent& event) override;

  SessionHooks hooks();
  SessionOptions session_options();
  FrameSink& sink() { return *session_->sink(); }
  Verdict decide(const std::vector<NodeReport>& reports) const;
  void say(const std::string& what) const;
  void start();
  void connected(const Status& outcome);
  void failed(const std::string& why);
  void went_on(const std::string& what);
  void poll();
  void take_finished();
  void finish_oldest();
  void post();
  void end_soon();
  void later(std::uint64_t most_ns, void (Member::*what)());
  std::uint64_t below(std::uint64_t n) { return n == 0 ? 0 : random_() % n; }

  SimNetwork* const network_;
  const int rank_;
  const Scenario& scenario_;
  Workload* const workload_;
  const Say broken_, trace_;
  const std::function<void()> switching_;
  std::mt19937_64 random_;
  SimBackground background_;
  std::unique_ptr<Session> session_;
  std::deque<std::unique_ptr<Posted>> posted_;
  std::size_t next_call_ = 0, finished_ = 0;
  bool posts_later_ = false;
  bool has_outcome_ = false, connected_ = false, has_failed_ = false, ending_ = false;
  bool over_ = false;
  int plan_changes_ = 0, plan_changes_given_up_ = 0;
  std::vector<std::vector<int>> sides_;
  std::string error_;
  std::uint64_t error_ns_ = 0;
};

}  // namespace riffle::sim
