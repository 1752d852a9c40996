#include "plugin/collective/elastic/succession.h"

namespace riffle {

void Succession::supersede() {
  if (next_) former_.push_back(std::move(next_));  // frames may be on their way into it
  drained_ = nullptr;
}

void Succession::accept(std::unique_ptr<Term> term, RecoveryOrder order,
                        std::vector<std::uint64_t> frames, std::function<void()> drained) {
  next_ = std::move(term);
  order_ = std::move(order);
  frames_ = std::move(frames);
  drained_ = std::move(drained);
  check();
}

void Succession::check() {
  if (!drained_ || !next_) return;
  const std::vector<int>& nodes = next_->mesh.members().nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const int place = static_cast<int>(i), node = nodes[i];
    if (place == next_->mesh.rank()) continue;
    if (traffic_.arrived[node] < frames_[i] || traffic_.under_way[node] > 0) return;
  }
  former_.clear();
  std::exchange(drained_, nullptr)();
}

}  // namespace riffle
