#include "lab/simulation/play.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "lab/simulation/member.h"
#include "topology/base/time.h"

namespace riffle::sim {
namespace {

// Far more than any scenario needs; a run that goes on is a livelock.
constexpr std::uint64_t kMostEvents = 200'000'000;

class Play {
 public:
  using Trace = std::function<void(std::uint64_t, const std::string&)>;
  Play(const Scenario& scenario, const Trace& trace)
      : s_(scenario),
        trace_(trace),
        network_(scenario.fabric, scenario.network),
        workload_(scenario) {
    Member::Say say;
    if (trace_) say = [this](const std::string& what) { trace_(network_.now_ns(), what); };
    for (int r = 0; r < s_.size(); ++r) {
      members_.push_back(std::make_unique<Member>(
          &network_, r, s_, &workload_, [this](const std::string& what) { broken(what); }, say,
          r == 1 ? [this] { plan_switch_begins(); } : std::function<void()>()));
    }
    network_.carry_only([](const FrameHeader& header) {  // probes send zeros that go nowhere
      return header.type != FrameType::kProbe ||
             frame_of<ProbeFrame>(header).step != ProbeFrame::kData;
    });
    for (const Fault& fault : s_.faults) {
      if (fault.is_in_switch) {
        in_switch_.push_back(fault);
      } else {
        network_.at(fault.when_ns, [this, fault] { strike(fault); });
      }
    }
  }

  Outcome run() {
    try {
      while (outcome_.broken.empty() && !is_over() && network_.step()) {
        if (network_.counters().events > kMostEvents) broken("it never ends");
      }
      if (outcome_.broken.empty()) check_end();
    } catch (const std::exception& e) {
      broken(std::string("an invariant does not hold: ") + e.what());
    }
    outcome_.end_ns = network_.now_ns();
    outcome_.counters = network_.counters();
    for (int r = 0; r < s_.size(); ++r) {
      const Member& m = *members_[r];
      outcome_.nodes.push_back({survives(r), m.error(), m.finished_calls(), m.side()});
    }
    for (const auto& m : members_) outcome_.calls += m->finished_calls();
    for (const auto& m : members_) {
      outcome_.losses_survived = std::max(outcome_.losses_survived, m->losses_survived());
      outcome_.went_on += m->is_over() && m->error().empty() && m->losses_survived() > 0;
    }
    outcome_.plan_changes = members_[0]->plan_changes();
    outcome_.plan_changes_given_up = members_[0]->plan_changes_given_up();
    return outcome_;
  }

 private:
  void broken(const std::string& what) {
    if (outcome_.broken.empty()) outcome_.broken = what;
  }
  // The next of the faults that wait for it strikes somewhere in the middle.
  void plan_switch_begins() {
    if (in_switch_.empty()) return;
    const Fault fault = in_switch_.front();
    in_switch_.erase(in_switch_.begin());
    ++outcome_.faults_in_switches;
    network_.at(network_.now_ns() + fault.when_ns, [this, fault] { strike(fault); });
  }
  bool survives(int rank) const { return network_.is_alive(rank) && !stopped_[rank]; }

  // Members end in any order; those known to be over are not asked again.
  bool is_over() {
    while (first_running_ < s_.size() &&
           (members_[first_running_]->is_over() || !survives(first_running_))) {
      ++first_running_;
    }
    return first_running_ == s_.size();
  }

  void strike(const Fault& f) {
    if (trace_) trace_(network_.now_ns(), describe(f));
    switch (f.kind) {
      case Fault::Kind::kKill:
        blame(f.node);
        return network_.kill(f.node);
      case Fault::Kind::kStop:
        blame(f.node);
        stopped_[f.node] = true;
        return network_.stop(f.node);
      case Fault::Kind::kPause:
        if (f.length_ns > s_.network.peer_timeout_ns / 2) blame(f.node);
        network_.stop(f.node);
        return network_.at(network_.now_ns() + f.length_ns, [this, f] {
          if (!stopped_[f.node]) network_.resume(f.node);
        });
      case Fault::Kind::kBreak:
        blame(f.node);
        blame(f.other);
        return network_.break_link(f.node, f.other);
      case Fault::Kind::kUnplug:
        blame(f.node);
        for (int other = 0; other < s_.size(); ++other) {
          if (other != f.node) network_.break_link(f.node, other);
        }
        return;
      case Fault::Kind::kCutRack:
        return cut_rack(f.node);
      case Fault::Kind::kNodeRate:
        if (s_.session.replan.least_kbps > 0) blame(f.node);  // it may be sent away
        [[fallthrough]];
      case Fault::Kind::kRackRate:
        set_rate(f, f.factor);
        return network_.at(network_.now_ns() + f.length_ns, [this, f] { set_rate(f, 1); });
    }
  }
  void cut_rack(int rack) {
    for (int a = 0; a < s_.size(); ++a) {
      blame(a);
      for (int b = 0; b < s_.size(); ++b) {
        const bool is_across = s_.fabric.nodes[a].rack == rack && s_.fabric.nodes[b].rack != rack;
        if (is_across) network_.break_link(a, b, true);
      }
    }
  }
  void set_rate(const Fault& f, double factor) {
    const auto scaled = [factor](std::int64_t kbps) {
      return kbps == 0 ? 0
                       : std::max<std::int64_t>(
                             1, static_cast<std::int64_t>(static_cast<double>(kbps) * factor));
    };
    if (f.kind == Fault::Kind::kNodeRate) {
      const NodeLink& node = s_.fabric.nodes[f.node];
      network_.set_node_rate(f.node, scaled(node.out_kbps), scaled(node.in_kbps));
    } else {
      const RackLink& rack = s_.fabric.racks[f.node];
      network_.set_rack_rate(f.node, scaled(rack.up_kbps), scaled(rack.down_kbps));
    }
  }
  void blame(int rank) {
    culprits_.push_back(rank);
    last_fault_ns_ = network_.now_ns();
  }

  void check_end() {
    for (int r = 0; r < s_.size(); ++r) {
      if (!survives(r)) continue;
      const Member& m = *members_[r];
      if (!m.is_over()) {
        return broken("node " + std::to_string(r) + " waits for " + m.waiting_for() +
                      " and nothing is under way");
      }
      if (m.error().empty()) continue;
      ++outcome_.failed_nodes;
      if (!goes_on()) check_error(r, m);
    }
    if (goes_on()) check_sides();
    check_queues();
  }

  bool goes_on() const { return s_.session.survivors.is_on; }

  // Of those who are left without an error, no two may have gone on apart.
  void check_sides() {
    bool all_connected = true, breaks = false;
    for (const Fault& f : s_.faults) {
      breaks |= f.kind == Fault::Kind::kBreak || f.kind == Fault::Kind::kCutRack;
    }
    for (const auto& m : members_) all_connected &= m->is_connected();
    std::sort(culprits_.begin(), culprits_.end());
    culprits_.erase(std::unique(culprits_.begin(), culprits_.end()), culprits_.end());
    for (int a = 0; a < s_.size(); ++a) {
      const Member& m = *members_[a];
      if (!survives(a)) continue;
      if (!m.error().empty()) {
        // Connect, and a broken link, may cost others.
        const bool is_culprit = std::binary_search(culprits_.begin(), culprits_.end(), a);
        if (!all_connected || breaks || is_culprit) continue;
        if (2 * culprits_.size() < members_.size()) {
          return broken("node " + std::to_string(a) + " says \"" + m.error() +
                        "\" though most nodes are well");
        }
        continue;
      }
      if (m.finished_calls() < s_.calls.size()) {
        return broken("node " + std::to_string(a) + " has no error and not all results");
      }
      for (int b = 0; b < a; ++b) {
        const Member& other = *members_[b];
        if (!survives(b) || !other.error().empty()) continue;
        const auto has = [](const Member& x, int node) {
          return std::binary_search(x.side().begin(), x.side().end(), node);
        };
        if (!has(m, b) && !has(other, a)) {
          return broken("nodes " + std::to_string(a) + " and " + std::to_string(b) +
                        " went on apart from each other");
        }
      }
    }
  }

  void check_error(int rank, const Member& m) {
    const std::string who = "node " + std::to_string(rank) + " says \"" + m.error() + "\"";
    if (s_.is_survivable()) return broken(who + " though nothing ended");
    if (culprits_.empty()) return broken(who + " before anything happened");
    const std::uint64_t begin_ns =
        m.is_connected()
            ? last_fault_ns_
            : std::max(last_fault_ns_, s_.most_start_ns + s_.session.connect_timeout_ns);
    const std::uint64_t late_ns = begin_ns + s_.session.peer_timeout_ns + kSecond;
    const bool is_culprit = std::find(culprits_.begin(), culprits_.end(), rank) != culprits_.end();
    if (is_culprit) return;  // a node that slept through it hears when it wakes
    if (m.error_ns() > late_ns) {
      return broken(who + " " + std::to_string((m.error_ns() - begin_ns) / 1'000'000) +
                    " ms after the last fault");
    }
    // News that is held up may come after its teller has gone, who then looks like the cause.
    const bool is_held_up = s_.network.loss_per_frame > 0 ||
                            std::any_of(s_.faults.begin(), s_.faults.end(), [](const Fault& f) {
                              return f.kind == Fault::Kind::kNodeRate;
                            });
    const bool names_one = std::any_of(culprits_.begin(), culprits_.end(), [&](int c) {
      return m.error().find("node " + std::to_string(c) + " ") != std::string::npos ||
             m.error().find("node " + std::to_string(c) + ":") != std::string::npos;
    });
    if (m.is_connected() && !is_held_up && !names_one)
      broken(who + ", which names no node that is to blame");
  }

  // Per link at most what the running chunks can send over it, and a few messages.
  void check_queues() {
    const EngineOptions& e = s_.session.engine;
    const std::uint64_t pieces = e.chunk_bytes / e.piece_bytes + 2;
    std::uint64_t groups = 0;
    for (const GroupPlan& plan : s_.plans.lanes) {
      std::uint64_t sum = 0;
      for (const Level& level : plan.levels) {
        for (const Group& g : level.groups) sum = std::max<std::uint64_t>(sum, g.members.size());
      }
      groups = std::max(groups, sum * plan.levels.size());
    }
    // Plans that replanning intervals change to have at most as many levels as doublings, twice.
    if (s_.session.replan.collectives > 0) {
      groups = std::max<std::uint64_t>(groups, s_.fabric.nodes.size() * 8);
    }
    const std::uint64_t most = e.max_chunks * groups * pieces * 4 + 64;
    if (network_.counters().most_queued > most) {
      broken(std::to_string(network_.counters().most_queued) +
             " frames waited on one link, expected are at most " + std::to_string(most));
    }
  }

  const Scenario& s_;
  const Trace trace_;
  SimNetwork network_;
  Workload workload_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<bool> stopped_ = std::vector<bool>(s_.fabric.nodes.size(), false);
  std::vector<Fault> in_switch_;  // that wait for a change of the plan
  std::vector<int> culprits_;
  std::uint64_t last_fault_ns_ = 0;
  int first_running_ = 0;
  Outcome outcome_;
};

}  // namespace

Outcome play(const Scenario& scenario,
             const std::function<void(std::uint64_t, const std::string&)>& trace) {
  return Play(scenario, trace).run();
}

}  // namespace riffle::sim
