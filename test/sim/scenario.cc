#include "test/sim/scenario.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

#include "test/unit/random_plans.h"
#include "topology/plan/planner.h"

namespace riffle::sim {
namespace {

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : random_(seed) { s_.seed = seed; }

  Scenario draw() {
    draw_fabric();
    draw_network();
    draw_session();
    draw_plans();
    draw_calls();
    draw_faults();
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
    s_.most_linger_ns = one_in(2) ? 0 : 2 * kSecond;
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

const char* name_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kKill:
      return "kill node";
    case Fault::Kind::kStop:
      return "stop node";
    case Fault::Kind::kPause:
      return "pause node";
    case Fault::Kind::kBreak:
      return "break the connection of node";
    case Fault::Kind::kNodeRate:
      return "slow down node";
    case Fault::Kind::kRackRate:
      return "slow down the uplink of rack";
  }
  return "";
}

}  // namespace

bool Scenario::is_survivable() const {
  return std::all_of(faults.begin(), faults.end(), [this](const Fault& f) {
    return f.kind == Fault::Kind::kNodeRate || f.kind == Fault::Kind::kRackRate ||
           (f.kind == Fault::Kind::kPause && f.length_ns <= network.peer_timeout_ns / 2);
  });
}

Scenario draw_scenario(std::uint64_t seed) { return Drawing(seed).draw(); }

std::string describe(const Fault& f) {
  std::string text = name_of(f.kind) + (" " + std::to_string(f.node));
  std::array<char, 64> part{};
  if (f.kind == Fault::Kind::kBreak) text += " to node " + std::to_string(f.other);
  if (f.kind == Fault::Kind::kNodeRate || f.kind == Fault::Kind::kRackRate) {
    std::snprintf(part.data(), part.size(), " to %.1f %%", 100 * f.factor);
    text += part.data();
  }
  const bool passes = f.kind == Fault::Kind::kPause || f.kind == Fault::Kind::kNodeRate ||
                      f.kind == Fault::Kind::kRackRate;
  if (passes) {
    std::snprintf(part.data(), part.size(), " for %.3f ms", static_cast<double>(f.length_ns) / 1e6);
    text += part.data();
  }
  return text;
}

std::string describe(const Scenario& s) {
  const EngineOptions& e = s.session.engine;
  std::string text =
      "seed " + std::to_string(s.seed) + ": " + std::to_string(s.size()) + " nodes in " +
      std::to_string(s.fabric.racks.size()) + " racks, plan \"" + s.plans.name + "\" with " +
      std::to_string(s.plans.lanes.size()) + " lanes, " + std::to_string(s.calls.size()) +
      " calls of up to " + std::to_string(s.outstanding) + " at once, chunks of " +
      std::to_string(e.chunk_bytes) + " in pieces of " + std::to_string(e.piece_bytes) + " bytes\n";
  for (const Fault& f : s.faults) {
    std::array<char, 64> when{};
    std::snprintf(when.data(), when.size(), "  at %.3f ms: ", static_cast<double>(f.when_ns) / 1e6);
    text += when.data() + describe(f) + "\n";
  }
  return text;
}

}  // namespace riffle::sim
