#include "plugin/collective/connect/network_decision.h"

#include "plugin/collective/connect/decision.h"
#include "plugin/collective/connect/live_network.h"
#include "plugin/collective/connect/rack_sources.h"
#include "topology/probe/rack_search.h"

namespace riffle {

bool NetworkDecision::look_up(const std::vector<NodeReport>& reports, probe::KnownRacks* known) {
  racks_ = look_up_racks(options_, reports, known);
  log_one_machine(options_, reports);
  if (!riffle::wants_probe(options_, reports)) return false;
  network_ = remembered_network(options_, reports);
  return !network_.has_value();
}

bool NetworkDecision::knows_network(const std::vector<NodeReport>& reports) const {
  return remembered_network(options_, reports).has_value();
}

void NetworkDecision::probed(const std::vector<NodeReport>& reports, const ProbeOutcome& outcome) {
  if (outcome.findings.rounds == 0) network_ = remembered_network(options_, reports);
  if (network_) return;
  is_probed_here_ = true;
  network_ = probed_network(options_, outcome, reports, device_, racks());
  has_seen_pairs_ = network_ && outcome.trouble.empty() && network_->size() <= probe::kDenseNodes;
  // Also if NCCL's ring turns out to be better: then no verdict brings it.
  if (network_) remember_network(network_text(*network_));
}

Verdict NetworkDecision::decide(const std::vector<NodeReport>& reports) {
  Verdict verdict =
      riffle::decide(options_, reports, network_ ? &*network_ : nullptr, racks(), &basis_);
  // What is remembered stays as old as it is.
  if (!is_probed_here_) verdict.network.clear();
  basis_.has_seen_pairs = has_seen_pairs_;
  return verdict;
}

}  // namespace riffle
