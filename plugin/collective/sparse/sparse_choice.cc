#include "plugin/collective/sparse/sparse_choice.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "plugin/collective/sparse/sparse_run.h"
#include "plugin/kernels/types.h"
#include "topology/base/printed.h"
#include "topology/plan/planner.h"

namespace riffle {
namespace {

// Sparse sums delay gradients, and both times are predictions: less than twice as fast is not worth
// it.
constexpr double kWorthIt = 0.5;
// What a segment takes between threads and kernel whatever the network; measured on two nodes with
// nothing to wait for ("network and waiting" and work, `riffle bench --profile fast2 --sparse`).
constexpr double kSegmentUs = 200;

std::string ms(double us) { return printed("%.3g ms", us / 1000); }

struct Bucket {
  std::uint64_t elements = 0, chunk = 0, bytes = 0;
};

// What an exact sum takes: the plan's time, or the processor's if that is longer (decision.h).
double exact_us(const Fabric& fabric, const PlanSet& exact, const Bucket& b,
                const MachineSpeed& speed) {
  const double network_us = predict(fabric, exact, b.bytes, message_price_ns({speed})).time_us;
  if (speed.reduce_mbps <= 0 || speed.stack_mbps <= 0) return network_us;
  const ProcessorTime processor = processor_time(exact, b.bytes, speed);
  return std::max(network_us, processor.stack_us + processor.reduce_us);
}

}  // namespace

Result<SparseOrder> choose_sparse(const Fabric& fabric, const PlanSet& exact,
                                  const std::vector<Layout::Piece>& pieces,
                                  const SyncSettings& settings, std::uint64_t chunk_elements,
                                  const SparseMachine& machine) {
  std::map<std::uint32_t, Bucket> buckets;
  for (const Layout::Piece& p : pieces) {
    if (!SparseRun::is_eligible(p, settings.min_bytes, chunk_elements)) continue;
    Bucket& b = buckets[p.bucket];
    b.elements += p.valid;
    b.bytes += p.valid * size_of(static_cast<DataType>(p.type));
    b.chunk = std::max(b.chunk, SparseRun::segment_elements(p, chunk_elements));
  }
  if (buckets.empty()) return invalid_argument("no call of the job belongs to a large sum");

  const auto largest =
      std::ranges::max_element(buckets, {}, [](const auto& b) { return b.second.elements; });
  const sparse::Machine speed{.exchange_mbps = machine.exchange_mbps};
  const double density = settings.sparse.density;
  const sparse::SparsePlan plan =
      sparse::best_plan(fabric, static_cast<int>(settings.sparse.teams), density,
                        largest->second.elements, largest->second.chunk, speed);
  if (plan.node_at.empty()) {
    return invalid_argument(std::to_string(settings.sparse.teams) + " teams do not divide " +
                            std::to_string(fabric.size()) + " nodes");
  }
  SparseOrder order;
  order.teams = static_cast<std::uint64_t>(plan.teams);
  order.is_recursive = plan.across == sparse::Across::kRecursive;
  order.node_at.assign(plan.node_at.begin(), plan.node_at.end());
  order.is_sparse.assign(pieces.size(), 0);

  double sparse_us = 0, dense_us = 0;
  sparse::SparseTime parts;
  std::size_t chosen = 0;
  std::map<std::uint32_t, bool> is_sparse;
  for (const auto& [number, b] : buckets) {
    const sparse::SparseTime t = sparse::predict(fabric, plan, density, b.elements, b.chunk, speed);
    const double segments =
        std::ceil(static_cast<double>(b.elements) / static_cast<double>(b.chunk));
    const double sparse_time_us = t.total_us + segments * kSegmentUs;
    const double exact_time_us = exact_us(fabric, exact, b, machine.dense);
    is_sparse[number] = !settings.sparse.is_auto || sparse_time_us < kWorthIt * exact_time_us;
    sparse_us += sparse_time_us;
    dense_us += exact_time_us;
    parts.network_us += t.network_us;
    parts.processor_us += t.processor_us;
    chosen += is_sparse[number] ? 1 : 0;
  }
  const std::string times =
      "all-reduces of a step predicted to take " + ms(sparse_us) + " sparse at " +
      printed("%.3g %%", 100 * density) + " (" + ms(parts.network_us) + " of network, " +
      ms(parts.processor_us) + " of processor, " + std::to_string(plan.teams) +
      (plan.teams == 1 ? " team) and " : " teams) and ") + ms(dense_us) + " exact";
  if (chosen == 0) return invalid_argument(times);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto found = is_sparse.find(pieces[i].bucket);
    order.is_sparse[i] = found != is_sparse.end() && found->second &&
                         SparseRun::is_eligible(pieces[i], settings.min_bytes, chunk_elements);
  }
  order.reason = std::to_string(chosen) + " of " + std::to_string(buckets.size()) +
                 " large buckets sparse; " + times;
  return order;
}

}  // namespace riffle
