#include "plugin/collective/elastic/loss_report.h"

#include "topology/base/printed.h"

namespace riffle {

LossRecord loss_between(const Membership& before, const Membership& now, const Regroup& regroup,
                        double recovery_ms) {
  LossRecord loss;
  for (const int node : before.nodes) {
    if (now.has(node)) continue;
    const std::string& why = regroup.why_lost(node);
    loss.lost.push_back({node, why.empty() ? "others do not reach it" : why});
  }
  loss.left = static_cast<int>(now.nodes.size());
  loss.recovery_ms = recovery_ms;
  return loss;
}

std::string describe(const LossRecord& loss, int nodes, bool rescales, const Regroup& regroup,
                     const std::function<std::string(int node)>& name_of) {
  std::string lost;
  for (const LossRecord::Node& node : loss.lost) {
    const std::string name = name_of(node.rank);
    lost += lost.empty() ? "" : "; ";
    lost += regroup.has_left(node.rank) ? name + " has closed its communicator"
                                        : "lost " + name + ": " + node.why;
  }
  std::string line = (lost.empty() ? "no node was lost" : lost) +
                     printed("; %d of %d nodes go on, %.0f ms after it was noticed here", loss.left,
                             nodes, loss.recovery_ms);
  if (rescales) {
    line += "; sums are multiplied by " + std::to_string(nodes) + "/" + std::to_string(loss.left) +
            ", min and max are those of the survivors";
  } else {
    line += "; results are those of the survivors, not scaled (RIFFLE_RESCALE=0)";
  }
  return line;
}

}  // namespace riffle
