// A job on the simulated network whose all-reduces go through RelaxedCalls while nodes are lost
// (RIFFLE_ON_LOSS=continue). mode_checks.h says what must hold of every call.
//
// Jobs may close their communicators when they have all results, each when it likes: nobody may see
// an error then.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugin/transport/sim/sim_network.h"
#include "test/modes/job_call.h"
#include "test/modes/job_node.h"
#include "test/modes/mode_checks.h"

namespace riffle::sim {

struct ModeFault {
  enum class Kind { kKill, kStop, kUnplug, kCut };
  Kind kind = Kind::kKill;
  int node = 0;
  // Strikes so long after the first node has posted the first call of this step, or has heard of
  // the next agreement on a mode from there on.
  std::uint64_t step = 0, delay_ns = 0;
  bool is_in_switch = false;
  std::vector<int> side = {};  // kCut: nothing passes any more between the node and all but these
};

class ModeJob : public ModeCounts {
 public:
  struct Options {
    std::uint64_t seed = 1;
    int nodes = 8;
    int steps = 30;
    std::uint64_t sparse_teams = 1;
    SyncSettings settings{.mode = SyncMode::kDsSync,
                          .full_every = 7,
                          .warmup_steps = 3,
                          .state_limit_bytes = 64 << 20,
                          .min_bytes = 4096,
                          .sparse = {.density = 0.02, .ramp_steps = 8},
                          .survives_losses = true};
    SurvivorOptions survivors{.is_on = true};
    std::vector<testing::JobCall> calls = {{0, 0, 3000, 3000, 3000},
                                           {1, 0, 1500, 2600, 1500},
                                           {1, 1500, 1100, 2600, 1500},  // the rest is stale
                                           {2, 0, 100, 100, 100},        // no large sum: exact
                                           {3, 0, 2048, 2048, 2048}};
    // Where set, of `nodes` nodes; else all are equal.
    std::optional<Fabric> fabric;
    std::vector<ModeFault> faults;
    // Lost by what happens to others: they have no quorum, and must end with an error.
    std::vector<int> without_quorum;
    bool is_in_place = false;
    // Steps of which no node knows what its calls are, nor how much of them means something.
    std::set<std::uint64_t> unknown_steps;
    std::uint64_t peer_timeout_ns = 300'000'000;
    // By node: how much longer it takes from look to look.
    std::vector<std::uint64_t> delay_ns;
    // By node: how long after its last result it closes. Empty: nobody does.
    std::vector<std::uint64_t> close_ns;
    // Not 0: so long after its close a process ends, whatever is deferred in it.
    std::uint64_t exit_ns = 0;
  };

  explicit ModeJob(const Options& options);
  ~ModeJob();
  ModeJob(const ModeJob&) = delete;
  ModeJob& operator=(const ModeJob&) = delete;

  // Runs to the end; the first wrong thing, or empty.
  std::string run();

  const std::string& failure(int r) const;

  int faults_in_switches = 0;
  int terms = 1;
  int lingered = 0;      // nodes that closed while others needed them
  int cut_off = 0;       // ... and ended while they still did
  int closed_early = 0;  // nodes that closed while others had results to come

 private:
  struct Node;

  testing::JobSetup setup() const;
  void make_node(int r);
  void poll(Node& n);
  void poll_later(Node& n);
  void post(Node& n);
  void prepare(Node& n, ModeOutcome* outcome);
  void take_results(Node& n);
  void close(Node& n);
  void end(Node& n);
  bool survives(int r) const { return !lost_.contains(r); }
  bool has_all(const Node& n) const;
  bool is_through(const Node& n) const;
  void strike(const ModeFault& f);
  void arm(const ModeFault& f);
  void switching(const Node& n);
  std::string where() const;
  std::string check();
  void broken(const std::string& what) {
    if (broken_.empty()) broken_ = what;
  }

  const Options options_;
  SimNetwork network_;
  PlanSet plans_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::set<int> lost_;                // whom a fault concerned
  std::set<int> must_fail_;           // ... those that live, and have to hear of it
  std::set<std::vector<int>> sides_;  // all terms' members
  std::deque<ModeFault> waiting_, in_switch_;
  std::map<std::pair<std::uint64_t, std::size_t>, ModeOutcome> outcomes_;
  std::string broken_;
};

}  // namespace riffle::sim
