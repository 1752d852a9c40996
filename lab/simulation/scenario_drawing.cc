// A scenario from its number: every choice in it, and how likely each is.
#include <algorithm>
#include <cmath>
#include <random>

#include "lab/simulation/random_plans.h"
#include "lab/simulation/scenario.h"
#include "topology/base/time.h"
#include "topology/plan/planner.h"

namespace riffle::sim {
namespace {

constexpr std::uint64_t kMicrosecond = 1'000;

// Of so many groups of eight seeds one has replanning intervals, or probes.
constexpr std::uint64_t kGroup = 8, kWithIntervals = 4, kWithProbes = 21;

void scale_rates(Fabric* fabric, double factor) {
  const auto scale = [factor](std::int64_t* kbps) {
    if (*kbps > 0) {
      *kbps = std::max<std::int64_t>(1000, std::llround(static_cast<double>(*kbps) * factor));
    }
  };
  for (NodeLink& node : fabric->nodes) {
    scale(&node.out_kbps);
    scale(&node.in_kbps);
  }
  for (RackLink& rack : fabric->racks) {
    scale(&rack.up_kbps);
    scale(&rack.down_kbps);
  }
}

std::int64_t fastest_kbps(const Fabric& fabric) {
  std::int64_t fastest = 1;
  for (const NodeLink& node : fabric.nodes) fastest = std::max(fastest, node.out_kbps);
  return fastest;
}

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) {
    s_.seed = seed;
    s_.has_lengths = seed % 2 == 0;
  }

  Scenario draw() {
    draw_fabric();
    draw_network();
    draw_session();
    draw_plans();
    draw_calls();
    draw_faults();
    if (s_.seed / kGroup % kWithIntervals == 2) draw_intervals();
    if (s_.seed / kGroup % kWithProbes == 3) draw_probes();
    draw_window();
    return std::move(s_);
  }

  Scenario draw_losses() {
    s_ = draw();
    SurvivorOptions& survivors = s_.session.survivors;
    survivors.is_on = true;
    survivors.rescales = !one_in(4);
    for (Call& call : s_.calls) {  // integers cannot be scaled
      if (!survivors.rescales) break;
      if (call.type == DataType::kInt32) call.type = DataType::kFloat32;
      if (call.type == DataType::kUint8) call.type = DataType::kFloat64;
    }
    const auto ends_something = [this](const Fault& f) {
      return f.kind == Fault::Kind::kKill || f.kind == Fault::Kind::kStop ||
             f.kind == Fault::Kind::kBreak ||
             (f.kind == Fault::Kind::kPause && f.length_ns > s_.network.peer_timeout_ns);
    };
    if (std::any_of(s_.faults.begin(), s_.faults.end(), ends_something)) return std::move(s_);
    double run_us = 0;
    for (const Call& call : s_.calls) {
      run_us += 2 * bound_us(s_.fabric, call.count * size_of(call.type)) + 500;
    }
    Fault f;
    f.kind = one_in(2) ? Fault::Kind::kKill : Fault::Kind::kStop;
    f.node = static_cast<int>(below(s_.fabric.nodes.size()));
    f.when_ns =
        s_.most_start_ns + 5 * kMillisecond + below(static_cast<std::uint64_t>(run_us * 1e3));
    f.is_in_switch = s_.session.replan.collectives > 0 && one_in(2);
    if (f.is_in_switch) f.when_ns = below(50 * kMillisecond);
    s_.faults.push_back(f);
    std::sort(s_.faults.begin(), s_.faults.end(),
              [](const Fault& a, const Fault& b) { return a.when_ns < b.when_ns; });
    return std::move(s_);
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  // Between low and high, every order of magnitude as likely as the others.
  std::uint64_t spread(std::uint64_t low, std::uint64_t high) {
    int doublings = 0;
    while (low << (doublings + 1) <= high) ++doublings;
    const std::uint64_t base = low << below(static_cast<std::uint64_t>(doublings) + 1);
    return std::min(high, base + below(base));
  }

  void draw_fabric() {
    int nodes = 2 + static_cast<int>(below(7));
    if (one_in(8)) nodes = 9 + static_cast<int>(below(16));
    if (one_in(100)) nodes = 25 + static_cast<int>(below(40));
    const auto rate = static_cast<std::int64_t>(spread(100'000, 10'000'000));
    s_.fabric = even_fabric(nodes, rate);
    s_.fabric.latency_us = static_cast<std::int64_t>(spread(5, 200));
    const bool uneven = one_in(2);
    for (NodeLink& node : s_.fabric.nodes) {
      if (uneven) node.out_kbps = node.in_kbps = rate / (1 << below(4));
      if (one_in(10)) node.in_kbps /= 2;
    }
    const int racks = one_in(2) ? 1 : 1 + static_cast<int>(below(4));
    if (racks == 1) return;
    s_.fabric.racks.assign(racks, {});
    for (RackLink& rack : s_.fabric.racks) {
      rack.up_kbps = one_in(4) ? 0 : rate / (1 << below(3));
      rack.down_kbps = rack.up_kbps;
    }
    for (NodeLink& node : s_.fabric.nodes) node.rack = static_cast<int>(below(racks));
  }

  void draw_network() {
    SimOptions& n = s_.network;
    n.seed = random_();
    n.jitter_ns = one_in(3) ? 0 : spread(kMicrosecond, 300 * kMicrosecond);
    n.cross_rack_latency_ns = one_in(2) ? 0 : spread(10 * kMicrosecond, kMillisecond);
    n.streams = 1 + static_cast<int>(below(3));
    n.tick_ns = one_in(2) ? 1 : 100;
    n.frame_cpu_ns = one_in(2) ? 0 : spread(100, 10 * kMicrosecond);
    n.byte_cpu_ns = one_in(3) ? 0.2 : 0;
    n.loss_per_frame = one_in(3) ? 0.01 : 0;
    n.detect_ns = spread(100 * kMicrosecond, 50 * kMillisecond);
    n.peer_timeout_ns = 3 * kSecond;
    n.early_headers = !one_in(4);
    n.poisons = true;
  }

  void draw_session() {
    EngineOptions& e = s_.session.engine;
    e.piece_bytes = 256u << below(6);
    e.chunk_bytes = e.piece_bytes * (1 + below(8));
    e.window_bytes = 256u << below(8);
    e.max_chunks = 1 + static_cast<int>(below(16));
    e.max_operations = 8;
    e.has_blocks = one_in(2);
    s_.session.connect_timeout_ns = 5 * kSecond;
    s_.session.peer_timeout_ns = s_.network.peer_timeout_ns;
    s_.outstanding = 1 + static_cast<int>(below(8));
    s_.most_start_ns = one_in(2) ? 0 : spread(kMillisecond, kSecond);
    s_.most_think_ns = one_in(2) ? 0 : spread(10 * kMicrosecond, 5 * kMillisecond);
    s_.most_pause_before_close_ns = one_in(2) ? 0 : 2 * kSecond;
  }

  // Half of the time what the planner makes, else wilder ones.
  void draw_plans() {
    if (one_in(2)) {
      s_.plans = testing::RandomPlans(random_()).plans(s_.size());
      return;
    }
    PlanOptions options;
    options.max_lanes = 1 + static_cast<int>(below(8));
    options.seed = random_();
    const std::vector<Candidate> known = plan(s_.fabric, 1 << 20, options)->candidates;
    std::string name = known[below(known.size())].name;
    name.resize(name.find(' ') == std::string::npos ? name.size() : name.find(' '));
    options.only = name;
    auto choice = plan(s_.fabric, 1 << 20, options);
    if (!choice) {
      options.only.clear();
      choice = plan(s_.fabric, 1 << 20, options);
    }
    s_.plans = std::move(choice->plans);
  }

  void draw_calls() {
    static constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kInt32, DataType::kUint8,
                                          DataType::kFloat64};
    const std::uint64_t calls = 1 + below(6);
    // The larger the cluster, the less for each: a scenario is to take milliseconds.
    const std::uint64_t most = std::max<std::uint64_t>(1000, 400'000 / s_.fabric.nodes.size());
    for (std::uint64_t i = 0; i < calls; ++i) {
      Call call;
      call.type = kTypes[below(std::size(kTypes))];
      call.count = one_in(10) ? below(3) : spread(1, most / size_of(call.type));
      call.in_place = one_in(2);
      call.is_rounded = call.type == DataType::kFloat32 && one_in(2);
      s_.calls.push_back(call);
    }
  }

  void draw_faults() {
    const std::uint64_t faults = one_in(10) ? 0 : 1 + below(3);
    const bool survivable = one_in(3);
    double run_us = 500;
    for (const Call& call : s_.calls) {
      run_us += 2 * bound_us(s_.fabric, call.count * size_of(call.type)) + 500;
    }
    const auto run_ns = static_cast<std::uint64_t>(run_us * 1e3) + s_.most_start_ns +
                        s_.calls.size() * s_.most_think_ns / 2;
    for (std::uint64_t i = 0; i < faults; ++i) {
      Fault f;
      f.kind = survivable ? survivable_kind() : any_kind();
      f.when_ns = below(run_ns + 1);
      f.node = static_cast<int>(below(s_.fabric.nodes.size()));
      f.other = static_cast<int>((f.node + 1 + below(s_.fabric.nodes.size() - 1)) %
                                 s_.fabric.nodes.size());
      if (f.kind == Fault::Kind::kRackRate) {
        f.node = static_cast<int>(below(s_.fabric.racks.size()));
      }
      f.length_ns = spread(kMillisecond, kSecond);
      // Long enough to be given up, unless it must be survived.
      if (f.kind == Fault::Kind::kPause && !survivable && one_in(2)) f.length_ns = 8 * kSecond;
      f.factor = 1.0 / static_cast<double>(spread(2, 50));
      s_.faults.push_back(f);
    }
    std::sort(s_.faults.begin(), s_.faults.end(),
              [](const Fault& a, const Fault& b) { return a.when_ns < b.when_ns; });
  }
  // The plan changes in mid-job: links slow enough to be measured, calls enough to fill some
  // replanning intervals, rates that change for longer than one, and often a fault in the middle of
  // a change.
  void draw_intervals() {
    if (s_.size() > 12) return;
    const auto rate = static_cast<double>(spread(10'000, 40'000));
    scale_rates(&s_.fabric, rate / static_cast<double>(fastest_kbps(s_.fabric)));
    EngineOptions& e = s_.session.engine;
    e.piece_bytes = 1024u << below(4);
    e.chunk_bytes = e.piece_bytes * (1 + below(8));
    ReplanOptions& replan = s_.session.replan;
    replan.collectives = 1 + below(4);
    replan.shortest_ns = one_in(2) ? 0 : spread(kMillisecond, 200 * kMillisecond);
    replan.planned_bytes = 1 << 20;
    // Half of them so close ahead that nodes have to wait, and the decision matters to the chunk.
    if (one_in(2)) {
      replan.burst_chunks = below(4);
      replan.least_horizon_ns = 0;
    }
    replan.plan.max_lanes = 1 + static_cast<int>(below(4));
    s_.most_planning_ns = one_in(3) ? 0 : spread(kMillisecond, 200 * kMillisecond);
    // Nodes drift apart by as many chunks as may run, while one of them thinks.
    if (one_in(2)) e.max_chunks = 16 + static_cast<int>(below(48));
    s_.most_think_ns = one_in(3) ? spread(kMillisecond, 20 * kMillisecond)
                                 : std::min(s_.most_think_ns, kMillisecond);
    // Half of the time the plan that the planner would begin with.
    if (one_in(2)) s_.plans = plan(s_.fabric, replan.planned_bytes, replan.plan)->plans;
    s_.calls.clear();
    const std::uint64_t calls = 20 + below(30);
    const auto most =
        static_cast<std::uint64_t>(rate * 125 * 0.03);  // bytes of 30 ms, about 60 in all
    double run_us = 0;
    for (std::uint64_t i = 0; i < calls; ++i) {
      Call call;
      call.count = spread(1 + most / 32, most / 4);
      call.in_place = one_in(2);
      call.is_rounded = one_in(2);
      s_.calls.push_back(call);
      run_us += bound_us(s_.fabric, call.count * 4);
    }
    const auto run_ns = static_cast<std::uint64_t>(run_us * 1e3) + s_.most_start_ns;
    // Faults that end something, or pause it, are for half of them, mostly in a change of the plan.
    std::erase_if(s_.faults, [](const Fault& f) {
      return f.kind == Fault::Kind::kNodeRate || f.kind == Fault::Kind::kRackRate;
    });
    if (one_in(2)) s_.faults.clear();
    for (Fault& f : s_.faults) {
      f.is_in_switch = !one_in(4);
      f.when_ns = f.is_in_switch ? below(one_in(2) ? 2 * kMillisecond : 100 * kMillisecond)
                                 : below(run_ns + 1);
    }
    const std::uint64_t changes = 1 + below(3);
    for (std::uint64_t i = 0; i < changes; ++i) {
      Fault f;
      f.kind = one_in(3) ? Fault::Kind::kRackRate : Fault::Kind::kNodeRate;
      f.node = static_cast<int>(below(f.kind == Fault::Kind::kRackRate ? s_.fabric.racks.size()
                                                                       : s_.fabric.nodes.size()));
      f.when_ns = below(run_ns * 3 / 4 + 1);
      f.length_ns = spread(300 * kMillisecond, 3 * kSecond);
      f.factor = 1.0 / static_cast<double>(spread(2, 8));
      s_.faults.push_back(f);
    }
    std::sort(s_.faults.begin(), s_.faults.end(),
              [](const Fault& a, const Fault& b) { return a.when_ns < b.when_ns; });
  }

  void draw_probes() {
    if (s_.size() > 12) return;
    const double most_kbps = 200'000;  // a scenario is to take milliseconds
    scale_rates(&s_.fabric,
                std::min(1.0, most_kbps / static_cast<double>(fastest_kbps(s_.fabric))));
    s_.probes = true;
    // Faults in the first two seconds: in the middle of it.
    for (Fault& f : s_.faults) f.when_ns = below(2 * kSecond);
    std::sort(s_.faults.begin(), s_.faults.end(),
              [](const Fault& a, const Fault& b) { return a.when_ns < b.when_ns; });
  }

  // Half of them have a chunk window of their own, for sums of all sizes; by a generator of its
  // own, so that the others are what their seeds were before.
  void draw_window() {
    std::mt19937_64 random(~s_.seed);
    if (random() % 2 == 0) return;
    s_.session.engine.large_bytes = 0;
    s_.session.engine.most_windowed_bytes = random() % (1 << 20);
    s_.plans.busy_bytes = static_cast<std::uint32_t>(1 + random() % (1 << 15));
  }

  Fault::Kind survivable_kind() {
    static constexpr Fault::Kind kKinds[] = {Fault::Kind::kPause, Fault::Kind::kNodeRate,
                                             Fault::Kind::kRackRate};
    return kKinds[below(std::size(kKinds))];
  }
  Fault::Kind any_kind() {
    static constexpr Fault::Kind kKinds[] = {Fault::Kind::kKill,  Fault::Kind::kKill,
                                             Fault::Kind::kStop,  Fault::Kind::kBreak,
                                             Fault::Kind::kPause, Fault::Kind::kNodeRate};
    return kKinds[below(std::size(kKinds))];
  }

  std::mt19937_64 random_;
  Scenario s_;
};

}  // namespace

Scenario draw_scenario(std::uint64_t seed) { return Drawing(seed).draw(); }
Scenario draw_loss_scenario(std::uint64_t seed) { return Drawing(seed).draw_losses(); }

}  // namespace riffle::sim
