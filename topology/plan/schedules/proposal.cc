#include "topology/plan/schedules/proposal.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "topology/plan/cost.h"

namespace riffle {
namespace {

constexpr std::uint32_t kLargestChunkBytes = 1 << 20;
constexpr std::uint32_t kSmallestChunkBytes = 32 << 10;
constexpr int kCostedSteps = 16;

// What all steps of a table cost. Partitions are costed once, steps add them up by lane.
class TableCost {
 public:
  TableCost(const FabricView& view, const ScheduleTable& table) : view_(view), table_(table) {
    for (const GroupPlan& partition : table.partitions) {
      parts_.push_back(cost_of(view, PlanSet{{partition}, {}, 0}));
    }
  }

  // What the slowest chunk takes by itself, per byte of it. Chunks that cross a narrow link come in
  // turn, so the last of them may begin when nearly all else is done.
  double slowest_chunk_us() const {
    double slowest = 0;
    for (const PlanCost& part : parts_) {
      double sum = 0;
      for (const PhaseCost& phase : part.phases) sum += phase.time_us;
      slowest = std::max(slowest, sum);
    }
    return slowest;
  }

  PlanCost step(int t) const {
    PlanCost cost(view_);
    cost.lanes = table_.lanes;
    for (int lane = 0; lane < table_.lanes; ++lane) {
      const std::size_t entry =
          static_cast<std::size_t>(t) * static_cast<std::size_t>(table_.lanes) +
          static_cast<std::size_t>(lane);
      const PlanCost& part = parts_[table_.table[entry]];
      cost.loads += part.loads;
      cost.phases.insert(cost.phases.end(), part.phases.begin(), part.phases.end());
      cost.latency_us += part.latency_us / table_.lanes;
    }
    return cost;
  }

 private:
  const FabricView& view_;
  const ScheduleTable& table_;
  std::vector<PlanCost> parts_;
};

// Small chunks only if the lanes need them: each should get two of a call at least.
std::uint32_t largest_chunk(std::uint64_t bytes, int lanes) {
  std::uint32_t chunk = kLargestChunkBytes;
  while (chunk > kSmallestChunkBytes && bytes / chunk < 2 * static_cast<std::uint64_t>(lanes)) {
    chunk /= 2;
  }
  return chunk;
}

}  // namespace

void predict_time(const FabricView& view, const ScheduleTable& table,
                  const ScheduleOptions& options, ScheduleProposal& proposal) {
  const TableCost costs(view, table);
  // Lanes that go through the whole period at once make all steps alike; and where they do not, a
  // part of the steps tells of all.
  const int steps = table.lanes % table.steps == 0 ? 1 : table.steps;
  const int stride = std::max(1, steps / kCostedSteps);
  std::vector<PlanCost> cost;
  for (int t = 0; t < steps; t += stride) cost.push_back(costs.step(t));
  ScheduleCandidate& candidate = proposal.candidate;
  candidate.time_us = 0;
  for (std::uint32_t chunk = largest_chunk(options.bytes, table.lanes);
       chunk >= kSmallestChunkBytes; chunk /= 2) {
    const double tail_us = static_cast<double>(std::min<std::uint64_t>(chunk, options.bytes)) *
                           costs.slowest_chunk_us();
    double sum = 0, slowest = 0;
    std::string limit;
    for (const PlanCost& c : cost) {
      Prediction p = predict(view, c, options.bytes, chunk, options.message_ns);
      p.time_us += tail_us;
      sum += p.time_us;
      if (p.time_us > slowest) {
        slowest = p.time_us;
        limit = std::move(p.limit);
      }
    }
    const double mean = sum / static_cast<double>(cost.size());
    if (candidate.time_us > 0 && mean >= 0.995 * candidate.time_us) continue;
    candidate.time_us = mean;
    candidate.slowest_us = slowest;
    candidate.limit = std::move(limit);
    proposal.chunk_bytes = chunk;
  }
}

Company company_of(const Cycle& cycle, int nodes) {
  const std::size_t steps = cycle.steps.size();
  std::vector<std::size_t> sum(static_cast<std::size_t>(nodes), 0);
  std::vector<std::vector<std::size_t>> meetings(static_cast<std::size_t>(nodes));
  for (std::size_t t = 0; t < steps; ++t) {
    for (const auto& group : cycle.steps[t]) {
      if (group.size() < 2) continue;
      for (int m : group) {
        sum[static_cast<std::size_t>(m)] += group.size() - 1;
        meetings[static_cast<std::size_t>(m)].push_back(t);
      }
    }
  }
  Company company;
  company.least_size = 1 + static_cast<double>(*std::min_element(sum.begin(), sum.end())) /
                               static_cast<double>(steps);
  for (const auto& at : meetings) {
    std::size_t longest = at.empty() ? steps + 1 : at.front() + steps - at.back();
    for (std::size_t i = 1; i < at.size(); ++i) longest = std::max(longest, at[i] - at[i - 1]);
    company.longest_alone = std::max(company.longest_alone, static_cast<int>(longest));
  }
  return company;
}

}  // namespace riffle
