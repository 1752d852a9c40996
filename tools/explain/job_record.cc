#include "tools/explain/job_record.h"

#include <algorithm>

namespace riffle::tools {
namespace {

std::uint64_t minus(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

void RelaxedUse::add(const RelaxedUse& other) {
  calls += other.calls;
  full_calls += other.full_calls;
  doubts += other.doubts;
  mismatches += other.mismatches;
  not_finite += other.not_finite;
  deviations += other.deviations;
  rounds += other.rounds;
  waits += other.waits;
  corrections += other.corrections;
  gap_steps += other.gap_steps;
  longest_gap = std::max(longest_gap, other.longest_gap);
  sparse_chunks += other.sparse_chunks;
  redone += other.redone;
  sparse_elements += other.sparse_elements;
  sparse_bytes += other.sparse_bytes;
  brought += other.brought;
  sparse_work_us += other.sparse_work_us;
  sparse_span_us += other.sparse_span_us;
}

double RelaxedUse::mean_gap() const {
  return corrections == 0 ? 0 : static_cast<double>(gap_steps) / static_cast<double>(corrections);
}

double SizeTotals::quantile_us(double q) const {
  const double wanted = q * static_cast<double>(count);
  double seen = 0;
  for (const auto& [begin_us, operations] : times) {
    seen += static_cast<double>(operations);
    // Buckets are at most half an octave wide.
    if (seen >= wanted) {
      return std::min(static_cast<double>(max_us), static_cast<double>(begin_us) * 1.5);
    }
  }
  return static_cast<double>(max_us);
}

Sample since(const Sample& base, Sample sample) {
  sample.active_us = minus(sample.active_us, base.active_us);
  sample.bursts = minus(sample.bursts, base.bursts);
  sample.last_self = minus(sample.last_self, base.last_self);
  sample.others = minus(sample.others, base.others);
  for (auto& [peer, link] : sample.links) {
    const auto found = base.links.find(peer);
    if (found == base.links.end()) continue;
    const LinkTotals& before = found->second;
    link = {minus(link.out, before.out), minus(link.in, before.in),
            minus(link.busy_us, before.busy_us), minus(link.retransmits, before.retransmits),
            minus(link.last, before.last)};
  }
  for (auto& [up_to, totals] : sample.sizes) {
    const auto found = base.sizes.find(up_to);
    if (found == base.sizes.end()) continue;
    const SizeTotals& before = found->second;
    totals.count = minus(totals.count, before.count);
    totals.bytes = minus(totals.bytes, before.bytes);
    totals.total_us = minus(totals.total_us, before.total_us);
    for (const auto& [us, operations] : before.times) {
      totals.times[us] = minus(totals.times[us], operations);
    }
  }
  return sample;
}

std::uint64_t bytes_of(const Sample& sample) {
  std::uint64_t bytes = 0;
  for (const auto& [up_to, totals] : sample.sizes) bytes += totals.bytes;
  return bytes;
}

const std::vector<PlanEvent>& plans_of(const CommRecords& comm) {
  static const std::vector<PlanEvent> none;
  const std::vector<PlanEvent>* plans = &none;
  for (const auto& [rank, node] : comm.nodes) {
    const bool has_fabric = std::any_of(node.plans.begin(), node.plans.end(),
                                        [](const PlanEvent& p) { return p.fabric.has_value(); });
    if (plans->empty() || has_fabric) plans = &node.plans;
    if (has_fabric) break;
  }
  return *plans;
}

}  // namespace riffle::tools
