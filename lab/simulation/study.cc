#include "lab/simulation/study.h"

#include <algorithm>
#include <chrono>
#include <random>

namespace riffle::sim {
namespace {

constexpr FabricClassName kClasses[] = {{FabricClass::kFlat, "flat"},
                                        {FabricClass::kEvenRacks, "even-racks"},
                                        {FabricClass::kUnevenRacks, "uneven-racks"},
                                        {FabricClass::kHalfRate, "half-rate"}};
constexpr std::int64_t kDivisors[] = {1, 2, 4, 10};

// The standard's distributions differ between implementations; its engines do not.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int between(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  std::int64_t rate(std::int64_t base_kbps) { return base_kbps / kDivisors[between(0, 3)]; }

 private:
  std::mt19937_64 random_;
};

void add_node(Fabric& f, std::int64_t kbps, int rack) {
  f.nodes.push_back({"n" + std::to_string(f.size()), kbps, kbps, rack});
}

Fabric flat(Draw& draw, std::int64_t base_kbps) {
  Fabric f;
  f.racks.push_back({"r0", 0, 0});
  for (int i = draw.between(4, 64); i > 0; --i) add_node(f, draw.rate(base_kbps), 0);
  return f;
}

Fabric racks(Draw& draw, bool is_uneven, std::int64_t base_kbps) {
  constexpr int kTaperSteps = 1000;
  Fabric f;
  const int count = draw.between(2, 8);
  for (int r = 0; r < count; ++r) {
    std::int64_t sum = 0;
    for (int i = draw.between(1, 8); i > 0; --i) {
      add_node(f, is_uneven ? draw.rate(base_kbps) : base_kbps, r);
      sum += f.nodes.back().out_kbps;
    }
    const std::int64_t uplink = sum * kTaperSteps / draw.between(kTaperSteps, 8 * kTaperSteps);
    f.racks.push_back({"r" + std::to_string(r), uplink, uplink});
  }
  return f;
}

bool is_bound_by_slowest_node(const Fabric& f) {
  constexpr std::uint64_t kBytes = 1 << 30;
  std::int64_t slowest = f.nodes[0].out_kbps;
  for (const NodeLink& n : f.nodes) slowest = std::min(slowest, n.out_kbps);
  const double alone_us = static_cast<double>(kBytes) * 8000 / static_cast<double>(slowest);
  return bound_us(f, kBytes) <= alone_us * (1 + 1e-9);
}

}  // namespace

std::span<const FabricClassName> fabric_classes() { return kClasses; }

Fabric draw_fabric(FabricClass kind, std::uint64_t seed, std::int64_t base_kbps) {
  Draw draw(seed);
  if (kind == FabricClass::kFlat) return flat(draw, base_kbps);
  if (kind == FabricClass::kEvenRacks) return racks(draw, false, base_kbps);
  if (kind == FabricClass::kHalfRate) {
    constexpr int kNodes = 64;
    Fabric f = even_fabric(kNodes, base_kbps);
    const auto slow = static_cast<std::size_t>(seed % (kNodes + 1));
    if (slow < kNodes) f.nodes[slow].out_kbps = f.nodes[slow].in_kbps = base_kbps / 2;
    return f;
  }
  Fabric f = racks(draw, true, base_kbps);
  while (is_bound_by_slowest_node(f)) f = racks(draw, true, base_kbps);
  return f;
}

Result<Studied> study(const Fabric& fabric, std::uint64_t bytes, const PlanOptions& planner,
                      const SimulateOptions& simulator) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Result<PlanChoice> choice = plan(fabric, bytes, planner);
  if (!choice) return choice.status();
  const auto planned = Clock::now();
  const Result<Simulated> run = simulate(fabric, choice->plans, bytes, simulator);
  if (!run) return run.status();
  const auto end = Clock::now();
  Studied result;
  result.plan = choice->plans.name;
  result.bound_us = choice->bound_us;
  result.predicted_us = choice->time_us;
  result.simulated_us = run->time_us;
  result.planning_s = std::chrono::duration<double>(planned - begin).count();
  result.simulating_s = std::chrono::duration<double>(end - planned).count();
  return result;
}

}  // namespace riffle::sim
