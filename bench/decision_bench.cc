// What RIFFLE_COLLNET=auto believes of adding up, against the same sums done: an even network of 2
// to 256 nodes at 10 to 100 Gbit/s, 32 MiB, shard by shard as the node that adds most has them in
// its program (machine_speed.h). Is the verdict the same with the time that was measured? Exit code
// 1 if one is not. Network, TCP and NCCL are the model's in both: nothing here times them.
//
//   build/bench/riffle_decision_bench
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "plugin/collective/base/machine_speed.h"
#include "plugin/collective/connect/decision.h"
#include "plugin/collective/engine/program.h"
#include "plugin/kernels/reduce.h"

namespace riffle {
namespace {

constexpr std::uint64_t kBytes = 32 << 20;  // what the decision is made for
constexpr std::size_t kFragmentBytes = 128 << 10;
constexpr std::int64_t kGbit = 1'000'000;
constexpr int kRepeats = 3;

double cpu_us() {
  timespec t;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

// Elements of the buffer that are added from `operands` partial sums.
struct Sum {
  std::size_t begin, end, operands;
};

std::vector<Sum> sums_of(const PlanSet& plans, int rank) {
  std::vector<Sum> sums;
  const std::uint64_t count = kBytes / sizeof(float) / plans.lanes.size();
  for (std::size_t lane = 0; lane < plans.lanes.size(); ++lane) {
    const Result<Program> program = compile(plans.lanes[lane], rank);
    if (!program) std::abort();
    const std::size_t begin = lane * count;
    for (const LocalGroup& local : program->groups) {
      for (std::size_t s = 0; s < local.routes.size(); ++s) {
        if (local.routes[s].operands() < 2) continue;
        sums.push_back({begin + element_of(local.group.cuts[s], count, 1),
                        begin + element_of(local.group.cuts[s + 1], count, 1),
                        local.routes[s].operands()});
      }
    }
  }
  return sums;
}

std::size_t added(const std::vector<Sum>& sums) {
  std::size_t elements = 0;
  for (const Sum& s : sums) elements += (s.end - s.begin) * (s.operands - 1);
  return elements;
}

// A node's own data and the results are in memory, what arrived just now is in the cache.
double measured_us(const std::vector<Sum>& sums) {
  static std::vector<float> own(kBytes / sizeof(float), 1.0F), result(own.size());
  constexpr std::size_t kCount = kFragmentBytes / sizeof(float);
  std::size_t most = 2;
  for (const Sum& s : sums) most = std::max(most, s.operands);
  const std::vector<std::vector<float>> arrived(most - 1, std::vector<float>(kCount, 2.0F));
  double best_us = std::numeric_limits<double>::max();
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const double begin_us = cpu_us();
    for (const Sum& s : sums) {
      for (std::size_t at = s.begin; at < s.end; at += kCount) {
        std::vector<const void*> operands = {own.data() + at};
        for (std::size_t k = 1; k < s.operands; ++k) operands.push_back(arrived[k - 1].data());
        reduce(result.data() + at, operands, std::min(kCount, s.end - at), DataType::kFloat32,
               ReduceOp::kSum);
      }
    }
    best_us = std::min(best_us, cpu_us() - begin_us);
  }
  return best_us;
}

bool verdict(const Fabric& fabric, const PlanChoice& choice, const MachineSpeed& speed) {
  std::vector<NodeReport> reports(fabric.nodes.size());
  for (NodeReport& r : reports) r.speed = speed;
  std::string why;
  return is_worth_it(fabric, choice, reports, true, &why);
}

int run() {
  MachineSpeed speed;
  for (int i = 0; i < kRepeats; ++i) speed = machine_speed();
  std::printf("reduction %.1f GB/s, TCP %.1f GB/s\n", static_cast<double>(speed.reduce_mbps) / 1e3,
              static_cast<double>(speed.stack_mbps) / 1e3);
  std::printf("%6s %7s %12s %12s %6s  %s\n", "nodes", "Gbit/s", "modelled us", "measured us",
              "ratio", "verdict");
  int cases = 0, differ = 0;
  double least = std::numeric_limits<double>::max(), most = 0;
  for (int nodes = 2; nodes <= 256; nodes *= 2) {
    for (const int gbit : {10, 25, 50, 100}) {
      const Fabric fabric = even_fabric(nodes, gbit * kGbit);
      const Result<PlanChoice> choice = plan(fabric, kBytes, {});
      if (!choice) return 1;
      std::vector<Sum> sums;
      for (int rank = 0; rank < nodes; ++rank) {
        std::vector<Sum> own = sums_of(choice->plans, rank);
        if (added(own) > added(sums)) sums = std::move(own);
      }
      const double modelled = processor_time(choice->plans, kBytes, speed).reduce_us;
      const double measured = measured_us(sums), ratio = modelled / measured;
      MachineSpeed as_measured = speed;
      as_measured.reduce_mbps =
          static_cast<std::int64_t>(static_cast<double>(speed.reduce_mbps) * ratio);
      const bool is_worth = verdict(fabric, *choice, speed);
      const bool is_really = verdict(fabric, *choice, as_measured);
      std::printf("%6d %7d %12.0f %12.0f %6.2f  %s%s\n", nodes, gbit, modelled, measured, ratio,
                  is_worth ? "Riffle" : "NCCL", is_worth == is_really ? "" : ", rather the other");
      ++cases;
      differ += is_worth != is_really;
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
  }
  std::printf("verdicts the same: %d of %d; modelled over measured: %.2f to %.2f\n", cases - differ,
              cases, least, most);
  return differ > 0;
}

}  // namespace
}  // namespace riffle

int main() { return riffle::run(); }
