// One random case for the engine on an in-memory network that reorders every frame: random plans,
// collectives, types, operators, sizes, exact or within the groups of a relaxed step, interleavings
// and, on request, changes of the plan while chunks are in flight; and the check of every result.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "test/unit/engine_harness.h"
#include "test/unit/numbers.h"
#include "test/unit/random_plans.h"

namespace riffle::testing {

struct Call {
  Collective collective;
  DataType type;
  ReduceOp op;
  std::uint64_t count;
  std::uint64_t block;  // reduce-scatter, all-gather
  std::uint64_t window;
  bool in_place;
  std::int64_t step = Operation::kExact;
  std::uint32_t lane = 0;
  std::uint64_t valid = 0;                                // elements that are reduced
  std::vector<std::vector<std::byte>> input, send, recv;  // per node; recv has guard bytes
  std::vector<std::unique_ptr<Operation>> operations;
};

inline constexpr std::size_t kGuardBytes = 64;

// The part of node r's block inside the window, in elements of the window.
inline Range block_in_window(const Call& c, int r) {
  const auto clip = [&](std::uint64_t e) {
    return std::min(e > c.window ? e - c.window : 0, c.count);
  };
  return {clip(r * c.block), clip((r + 1) * c.block)};
}

// The nodes that node `r` sums with, itself included, in the order of the group.
inline std::vector<int> group_of(const GroupPlan& partial, int r) {
  for (const Level& level : partial.levels) {
    for (const Group& g : level.groups) {
      if (std::find(g.members.begin(), g.members.end(), r) != g.members.end()) return g.members;
    }
  }
  return {r};
}

// Roundings that one element may see on its way: one per direct group, one per hop of a ring.
inline int roundings(const PlanSet& plans) {
  int worst = 0;
  for (const auto* lanes : {&plans.lanes, &plans.small.lanes}) {
    for (const GroupPlan& plan : *lanes) {
      int sum = 0;
      for (const Level& level : plan.levels) {
        int most = 0;
        for (const Group& g : level.groups) {
          const int members = static_cast<int>(g.members.size());
          most = std::max(most, g.pattern == Pattern::kRing ? members - 1 : 1);
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
  // none, some or all of the nodes know how much of each is valid (lengths.h).
  explicit EngineCase(std::uint64_t seed, int switches = 0, bool lengths = false)
      : random_(seed), nodes_(2 + below(15)), switches_(switches), has_lengths_(lengths) {
    plans_ = RandomPlans(random_()).plans(nodes_);
    options_.piece_bytes = 64u << below(4);
    options_.chunk_bytes = options_.piece_bytes * (1 + below(5));
    options_.window_bytes = 1u << (6 + below(8));
    options_.max_chunks = 1 + below(12);
    options_.max_operations = 16;
    options_.send_bytes = std::size_t{1} << below(18);
  }

  std::string run() {
    if (const Status s = validate(plans_); !s) return "plan: " + s.message();
    EngineCluster cluster(plans_, options_, random_());
    const int calls = 1 + below(6) + 2 * switches_;
    for (int i = 0; i < calls; ++i) calls_.push_back(make_call());
    if (has_lengths_) hide_lengths(&cluster);
    roundings_ = roundings(plans_);
    used_ = {{0, plans_}};
    if (std::string e = execute(&cluster); !e.empty()) return e;
    std::uint64_t seq = 0;
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (std::string e = check(calls_[i], seq); !e.empty()) {
        return "call " + std::to_string(i) + ": " + e;
      }
      seq += chunks_of(calls_[i]);
    }
    return "";
  }

 private:
  std::uint64_t chunks_of(const Call& c) const {
    const std::uint64_t chunk = options_.chunk_bytes / size_of(c.type);
    return std::max<std::uint64_t>(1, (c.count + chunk - 1) / chunk);
  }
  // Whom node `r` sums with in a call whose first chunk is number `seq`.
  std::vector<int> partners(const Call& c, std::uint64_t seq, int r) const {
    const PlanSet* plans = &used_[0].second;
    for (const auto& [first, later] : used_) {
      if (first <= seq) plans = &later;
    }
    const RelaxedPlans& relaxed = plans->relaxed;
    if (c.step != Operation::kExact && !relaxed.is_empty()) {
      const auto step = static_cast<std::uint64_t>(c.step);
      return group_of(relaxed.partitions[relaxed.index(step, c.lane)], r);
    }
    std::vector<int> all(nodes_);
    for (int i = 0; i < nodes_; ++i) all[i] = i;
    return all;
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
      const bool moved = cluster->network.step();
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
      const Engine& engine = node->engine;
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
      change->begin(RandomPlans(random_()).plans(nodes_), below(5) == 0);
      roundings_ = std::max(roundings_, roundings(change->plans));
    }
    const int r = below(nodes_);
    Engine& engine = cluster->nodes[r]->engine;
    if (change->unprepared > 0 && !change->done[r]) {
      auto made =
          Generation::make(change->plans, engine.next_generation(), r, nodes_, engine.options());
      if (!made) return made.status().message();
      if (const Status s = engine.prepare(std::move(*made)); !s) return s.message();
      const std::uint64_t hold = engine.earliest_switch() + below(6);
      engine.hold_at(hold);
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

  std::string check(const Call& c, std::uint64_t seq) const {
    const std::size_t size = size_of(c.type);
    for (int r = 0; r < nodes_; ++r) {
      const std::vector<int> group = partners(c, seq, r);
      for (std::size_t i = c.count * size; i < c.recv[r].size(); ++i) {
        if (c.recv[r][i] != std::byte{0xA5})
          return "wrote behind the buffer of node " + std::to_string(r);
      }
      if (!c.in_place && c.send[r] != c.input[r]) return "changed the send buffer";
      const Range own = block_in_window(c, r);
      for (std::uint64_t e = 0; e < c.count; ++e) {
        const std::byte* got = &c.recv[r][e * size];
        std::string wrong;
        if (e >= c.valid) {
          const std::vector<std::byte> before(size, std::byte{0xA5});
          const std::byte* was = c.in_place ? &c.input[r][e * size] : before.data();
          if (std::memcmp(got, was, size) != 0) wrong = "written though not valid";
        } else if (c.collective == Collective::kAllGather) {
          const auto owner = static_cast<int>((c.window + e) / c.block);
          if (*got != c.input[owner][e]) wrong = "not the owner's byte";
        } else if (c.collective == Collective::kReduceScatter && (e < own.begin || e >= own.end)) {
          if (*got != std::byte{0xA5}) wrong = "written outside the own block";
        } else {
          wrong = compare(c, e, got, group);
          if (c.collective == Collective::kAllReduce &&
              std::memcmp(got, &c.recv[group[0]][e * size], size) != 0) {
            wrong += " differs from node " + std::to_string(group[0]);
          }
        }
        if (!wrong.empty()) {
          return "element " + std::to_string(e) + " of " + std::to_string(c.count) + " on node " +
                 std::to_string(r) + ", " + name_of(c.type) + " " + name_of(c.op) + ": " + wrong;
        }
      }
    }
    return "";
  }

  static std::string compare_integers(const Call& c, std::uint64_t e, const std::byte* got,
                                      const std::vector<int>& group) {
    const std::size_t size = size_of(c.type);
    std::uint64_t expect = integer_bits(&c.input[group[0]][e * size], c.type);
    for (std::size_t i = 1; i < group.size(); ++i) {
      expect = combine(c, expect, integer_bits(&c.input[group[i]][e * size], c.type));
    }
    const std::uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    return (expect & mask) == integer_bits(got, c.type) ? "" : "wrong integer";
  }

  std::string compare(const Call& c, std::uint64_t e, const std::byte* got,
                      const std::vector<int>& group) const {
    const std::size_t size = size_of(c.type);
    if (!is_float(c.type)) {
      return compare_integers(c, e, got, group);
    }
    double expect = 0, magnitude = 0;
    for (const int r : group) {
      const double x = decode(&c.input[r][e * size], c.type);
      if (r == group[0]) {
        expect = x;
        magnitude = c.op == ReduceOp::kProd ? std::max(1.0, std::fabs(x)) : std::fabs(x);
        continue;
      }
      switch (c.op) {
        case ReduceOp::kSum:
          expect += x, magnitude += std::fabs(x);
          break;
        case ReduceOp::kProd:
          expect *= x, magnitude *= std::max(1.0, std::fabs(x));
          break;
        case ReduceOp::kMax:
          expect = std::max(expect, x);
          break;
        case ReduceOp::kMin:
          expect = std::min(expect, x);
          break;
      }
    }
    const double value = decode(got, c.type);
    const bool exact = c.op == ReduceOp::kMax || c.op == ReduceOp::kMin;
    const bool wide = c.type == DataType::kFloat32 || c.type == DataType::kFloat64;
    // Absolute errors of a sum add up along one path; relative errors of a product over all
    // operands.
    const int steps = wide || c.op == ReduceOp::kProd ? nodes_ : roundings_;
    const double unit = rounding_unit(c.type) * (1 + 1e-2);
    const double limit =
        exact ? 0 : magnitude * (std::pow(1 + unit, steps) - 1) + steps * smallest(c.type);
    if (std::fabs(value - expect) <= limit) return "";
    return "got " + std::to_string(value) + ", expected " + std::to_string(expect) + " within " +
           std::to_string(limit);
  }

  static std::uint64_t combine(const Call& c, std::uint64_t a, std::uint64_t b) {
    const std::size_t size = size_of(c.type);
    switch (c.op) {
      case ReduceOp::kSum:
        return a + b;
      case ReduceOp::kProd:
        return a * b;
      default:
        break;
    }
    bool less;
    if (is_signed_integer(c.type)) {
      less = sign_extend(a, size) < sign_extend(b, size);
    } else {
      less = a < b;
    }
    return (c.op == ReduceOp::kMax) == less ? b : a;
  }

  std::mt19937_64 random_;
  int nodes_;
  int switches_;
  bool has_lengths_;
  int roundings_ = 0;
  std::vector<std::pair<std::uint64_t, PlanSet>> used_;  // by the chunk from which on
  PlanSet plans_;
  EngineOptions options_;
  std::vector<Call> calls_;
};

}  // namespace riffle::testing
