#include "tools/explain/prediction.h"

#include <algorithm>

#include "tools/explain/limit.h"

namespace riffle::tools {
namespace {

// Plans are predicted for large sums; what is over sooner is mostly latency (as for the plugin's
// own Replanner). NCCL cuts a large all-reduce into calls, so what counts is what runs from idle to
// idle.
constexpr double kLeastBurstUs = 20'000;

bool was_exact(const NodeRecord& node, double since_t) {
  bool is_exact = true;
  for (const ModeEvent& mode : node.modes) {
    if (mode.t > since_t && !is_exact) return false;
    is_exact = mode.mode == "exact";
  }
  return is_exact;
}

}  // namespace

std::optional<double> over_prediction(const CommRecords& comm, const std::map<int, Sample>& totals,
                                      double since_t, const PlanEvent& plan) {
  if (plan.predicted_us <= 0 || plan.predicted_bytes == 0) return std::nullopt;
  for (const auto& [rank, node] : comm.nodes) {
    if (!was_exact(node, std::max(since_t, node.connected_t))) return std::nullopt;
  }
  const auto planned_bytes = static_cast<double>(plan.predicted_bytes);
  std::optional<double> least;  // of the node that was quickest: others began before and waited
  for (const auto& [rank, s] : totals) {
    const auto bytes = static_cast<double>(bytes_of(s));
    if (s.others > 0 || bytes == 0) return std::nullopt;
    const double predicted_us = kWirePerPayload * plan.predicted_us * bytes / planned_bytes;
    if (predicted_us < kLeastBurstUs * static_cast<double>(s.bursts)) return std::nullopt;
    const double ratio = static_cast<double>(s.active_us) / predicted_us;
    least = least ? std::min(*least, ratio) : ratio;
  }
  return least;
}

std::string cause_text(const PlanEvent& plan) {
  return plan.trigger == "trial" ? "model error (" + plan.cause + ")" : plan.cause;
}

}  // namespace riffle::tools
