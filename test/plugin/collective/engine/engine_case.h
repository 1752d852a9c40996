// One random case for the engine on an in-memory network that reorders every frame: random plans,
// collectives, types, operators, sizes, exact or within the groups of a relaxed step, interleavings
// and, on request, changes of the plan while chunks are in flight. engine_call.h checks the
// results.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lab/simulation/random_plans.h"
#include "test/plugin/collective/engine/engine_call.h"
#include "test/plugin/collective/engine/engine_harness.h"
#include "test/plugin/kernels/numbers.h"

namespace riffle::testing {

// The nodes that node `r` sums with, itself included, in the order of the group.
inline std::vector<int> group_of(const GroupPlan& partial, int r) {
  for (const Level& level : partial.levels) {
    for (const Group& g : level.groups) {
      if (std::find(g.members.begin(), g.members.end(), r) != g.members.end()) return g.members;
    }
  }
  return {r};
}

// Roundings that one element may see on its way: one per hop in each group.
inline int roundings(const PlanSet& plans) {
  int worst = 0;
  for (const auto* lanes : {&plans.lanes, &plans.small.lanes}) {
    for (const GroupPlan& plan : *lanes) {
      int sum = 0;
      for (const Level& level : plan.levels) {
        int most = 0;
        for (const Group& g : level.groups) {
          const int members = static_cast<int>(g.members.size());
          most = std::max(most, exchange_of(g.pattern).depth(members));
        }
        sum += most;
      }
      worst = std::max(worst, sum);
    }
  }
  if (!plans.relaxed.is_empty()) worst = std::max(worst, plans.lanes[0].nodes - 1);
  return worst;
}

struct PlanChange {
  explicit PlanChange(int nodes) : done(nodes, true) {}
  void begin(PlanSet to, bool drop) {
    plans = std::move(to);
    is_dropped = drop;
    seq = 0;
    done.assign(done.size(), false);
    unprepared = undecided = static_cast<int>(done.size());
  }
  bool is_over() const { return undecided == 0; }

  PlanSet plans;
  bool is_dropped = false;
  std::uint64_t seq = 0;
  std::vector<std::uint64_t> seqs;  // of all changes so far
  std::vector<bool> done;           // this step, per node
  int unprepared = 0, undecided = 0;
};

class EngineCase {
 public:
  // `switches`: how often the plan changes while the calls run. `lengths`: calls are padded, and
  // none, some or all of the nodes know how much of each is valid (lengths.h). `threads`: of every
  // node.
  explicit EngineCase(std::uint64_t seed, int switches = 0, bool lengths = false, int threads = 1)
      : random_(seed),
        nodes_(2 + below(15)),
        switches_(switches),
        has_lengths_(lengths),
        threads_(threads) {
    plans_ = draw_plans();
    options_.piece_bytes = 64u << below(4);
    options_.chunk_bytes = options_.piece_bytes * (1 + below(5));
    options_.window_bytes = 1u << (6 + below(8));
    options_.max_chunks = 1 + below(12);
    options_.max_operations = 16;
    options_.send_bytes = std::size_t{1} << below(18);
    options_.large_bytes = static_cast<std::size_t>(below(600));
  }

  std::string run() {
    if (const Status s = validate(plans_); !s) return "plan: " + s.message();
    EngineCluster cluster(plans_, options_, random_(), threads_);
    const int calls = 1 + below(6) + 2 * switches_;
    for (int i = 0; i < calls; ++i) calls_.push_back(make_call());
    if (has_lengths_) hide_lengths(&cluster);
    roundings_ = roundings(plans_);
    used_ = {{0, plans_}};
    if (std::string e = execute(&cluster); !e.empty()) return e;
    further_frames_ = cluster.further_frames();
    const CallCheck check(nodes_, roundings_);
    std::uint64_t seq = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const auto whom = [&](int r) { return partners(calls_[i], seq, r); };
      if (std::string e = check.check(calls_[i], whom); !e.empty()) {
        return "call " + std::to_string(i) + ": " + e;
      }
      seq += chunks_of(calls_[i], seq);
    }
    return "";
  }

  // Of run(): those that no first thread carried.
  std::uint64_t further_frames() const { return further_frames_; }

 private:
  const PlanSet& plans_at(std::uint64_t seq) const {
    const PlanSet* plans = &used_[0].second;
    for (const auto& [first, later] : used_) {
      if (first <= seq) plans = &later;
    }
    return *plans;
  }
  // Of a call whose first one is number `seq`: a plan with a window has smaller ones.
  std::uint64_t chunks_of(const Call& c, std::uint64_t seq) const {
    const std::uint64_t bytes = c.count * size_of(c.type);
    const bool has_window = c.collective == Collective::kAllReduce && c.step == Operation::kExact &&
                            bytes > options_.large_bytes && bytes <= options_.most_windowed_bytes;
    std::uint64_t chunks = 0;
    for (std::uint64_t begun = 0; begun < c.count || chunks == 0; ++chunks) {
      const PlanSet& plans = plans_at(seq + chunks);
      std::uint64_t most = options_.chunk_bytes / size_of(c.type);
      if (has_window && plans.busy_bytes > 0) {
        const std::uint64_t parts = plans.windowed_chunks();
        most = std::min(most, (c.count + parts - 1) / parts);
      }
      begun += std::max<std::uint64_t>(most, 1);
    }
    return chunks;
  }
  // Whom node `r` sums with in a call whose first chunk is number `seq`.
  std::vector<int> partners(const Call& c, std::uint64_t seq, int r) const {
    const RelaxedPlans& relaxed = plans_at(seq).relaxed;
    if (c.step != Operation::kExact && !relaxed.is_empty()) {
      const auto step = static_cast<std::uint64_t>(c.step);
      return group_of(relaxed.partitions[relaxed.index(step, c.lane)], r);
    }
    std::vector<int> all(nodes_);
    for (int i = 0; i < nodes_; ++i) all[i] = i;
    return all;
  }

  PlanSet draw_plans() {
    PlanSet plans = RandomPlans(random_(), kPatterns.size()).plans(nodes_);
    if (below(2) == 0) plans.busy_bytes = static_cast<std::uint32_t>(1 + below(4000));
    return plans;
  }

  int below(int n) { return static_cast<int>(random_() % n); }

  Call make_call() {
    Call c;
    const int kind = below(6);
    c.collective = kind == 0   ? Collective::kReduceScatter
                   : kind == 1 ? Collective::kAllGather
                               : Collective::kAllReduce;
    c.type = c.collective == Collective::kAllGather ? DataType::kUint8
                                                    : static_cast<DataType>(below(kDataTypes));
    c.op = static_cast<ReduceOp>(below(kReduceOps));
    const std::uint64_t chunk = options_.chunk_bytes / size_of(c.type);
    const std::uint64_t sizes[] = {0,
                                   1,
                                   3,
                                   17,
                                   chunk - 1,
                                   chunk,
                                   chunk + 1,
                                   3 * chunk + 7,
                                   static_cast<std::uint64_t>(1 + below(500))};
    c.count = sizes[below(9)];
    c.block = c.window = 0;
    if (c.collective != Collective::kAllReduce) {
      c.count = std::max<std::uint64_t>(1, c.count);
      c.block = 1 + below(static_cast<int>(c.count));
      const std::uint64_t whole = c.block * nodes_;
      c.window = random_() % whole;
      c.count = std::min(c.count, whole - c.window);
    }
    if (c.collective == Collective::kAllReduce && below(2) == 0) {
      c.count = std::min(c.count, chunk);
      c.step = below(100);
      c.lane = static_cast<std::uint32_t>(below(100));
    }
    c.valid = c.count;
    c.in_place = c.collective == Collective::kAllReduce && below(2) == 0;
    const std::size_t size = size_of(c.type);
    for (int r = 0; r < nodes_; ++r) {
      std::vector<std::byte> input(c.count * size);
      fill_random(input.data(), c.count, c.type, random_);
      c.send.push_back(input);
      c.recv.emplace_back(c.count * size + kGuardBytes, std::byte{0xA5});
      if (c.in_place) std::copy(input.begin(), input.end(), c.recv[r].begin());
      c.input.push_back(std::move(input));
      auto o = std::make_unique<Operation>();
      o->collective = c.collective;
      o->type = c.type;
      o->op = c.op;
      o->count = c.count;
      o->block = c.block;
      o->window = c.window;
      o->step = c.step;
      o->lane = c.lane;
      o->recv = c.recv[r].data();
      o->send = c.in_place ? c.recv[r].data() : c.send[r].data();
      c.operations.push_back(std::move(o));
    }
    return c;
  }

  // How much of each call is valid, and who knows.
  void hide_lengths(EngineCluster* cluster) {
    for (const auto& node : cluster->nodes) node->engine.use_lengths(true);
    int unknown = 0;
    std::uint64_t whole = 0;  // calls in which nobody asks
    for (Call& c : calls_) {
      if (c.collective != Collective::kAllReduce || c.step != Operation::kExact || c.count == 0) {
        continue;
      }
      const std::uint64_t valid = 1 + random_() % c.count;
      const int share = below(3);  // none, some, all know
      bool is_known = false;
      for (const auto& o : c.operations) {
        if (share == 0 || (share == 1 && below(2) == 0)) continue;
        o->valid = valid;
        is_known = true;
      }
      if (whole > 0) {
        --whole;
      } else if (is_known) {
        c.valid = valid;
        unknown = 0;
      } else if (++unknown == Lengths::kPatience) {
        whole = Lengths::kShortestPause;
      }
    }
  }

  // Nodes post at random moments, some far ahead of others.
  std::string execute(EngineCluster* cluster) {
    std::vector<std::size_t> posted(nodes_, 0);
    PlanChange change(nodes_);
    for (std::uint64_t events = 0;; ++events) {
      if (std::string e = go_on(&change, cluster); !e.empty()) return e;
      const int r = below(nodes_);
      if (posted[r] < calls_.size() && below(8) == 0) {
        Operation* o = calls_[posted[r]++].operations[r].get();
        o->state = Operation::State::kRunning;
        cluster->nodes[r]->engine.submit(o);
      }
      const bool moved = cluster->step();
      if (std::string e = cluster->error(); !e.empty()) return e;
      bool all_posted = true;
      for (const std::size_t p : posted) all_posted &= p == calls_.size();
      // A change needs a former one to be over, which takes chunks.
      if (!moved && all_posted) switches_ = 0;
      if (!moved && all_posted && change.is_over()) break;
    }
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      for (int r = 0; r < nodes_; ++r) {
        if (calls_[i].operations[r]->state != Operation::State::kDone) {
          return "call " + std::to_string(i) + " never ended on node " + std::to_string(r);
        }
      }
    }
    for (const auto& node : cluster->nodes) {
      if (threads_ > 1) break;  // a thread that has nothing to do keeps it until it has
      const ThreadedEngine& engine = node->engine;
      const auto is_ahead = [&](std::uint64_t seq) { return seq > engine.next_seq(); };
      const auto held = 1 + std::count_if(change.seqs.begin(), change.seqs.end(), is_ahead);
      if (engine.generations() > static_cast<std::size_t>(held))
        return "an ended plan is still in memory";
    }
    return "";
  }

  // One step, at some node, of taking a new plan: prepared everywhere at different moments, then
  // used from a chunk number that nobody has begun. Some changes are dropped before that.
  std::string go_on(PlanChange* change, EngineCluster* cluster) {
    if (below(4) != 0) return "";
    if (change->is_over()) {
      if (switches_ == 0 || below(20) != 0) return "";
      for (const auto& node : cluster->nodes) {  // as the agreement would: nobody lags two behind
        if (node->engine.generations() == Engine::kMaxGenerations) return "";
      }
      --switches_;
      PlanSet plans = draw_plans();
      change->begin(std::move(plans), below(5) == 0);
      roundings_ = std::max(roundings_, roundings(change->plans));
    }
    const int r = below(nodes_);
    ThreadedEngine& engine = cluster->nodes[r]->engine;
    if (change->unprepared > 0 && !change->done[r]) {
      auto made = ThreadedEngine::make(change->plans, engine.next_generation(), r, nodes_,
                                       engine.options());
      if (!made) return made.status().message();
      if (const Status s = engine.prepare(std::move(*made)); !s) return s.message();
      const std::uint64_t hold = engine.hold_after(static_cast<std::uint64_t>(below(6)));
      change->seq = std::max(change->seq, hold);
      change->done[r] = true;
      if (--change->unprepared == 0) {
        change->done.assign(nodes_, false);
        if (!change->is_dropped) {
          change->seqs.push_back(change->seq);
          used_.emplace_back(change->seq, change->plans);
        }
      }
    } else if (change->unprepared == 0 && !change->done[r]) {
      if (change->is_dropped) {
        engine.drop_prepared();
      } else {
        engine.switch_at(change->seq);
      }
      change->done[r] = true;
      --change->undecided;
    }
    return "";
  }

  std::mt19937_64 random_;
  int nodes_;
  int switches_;
  bool has_lengths_;
  int threads_;
  int roundings_ = 0;
  std::uint64_t further_frames_ = 0;
  std::vector<std::pair<std::uint64_t, PlanSet>> used_;  // by the chunk from which on
  PlanSet plans_;
  EngineOptions options_;
  std::vector<Call> calls_;
};

}  // namespace riffle::testing
