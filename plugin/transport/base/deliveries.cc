#include "plugin/transport/base/deliveries.h"

#include <utility>

namespace riffle {

Deliveries::One::One(std::shared_ptr<Deliveries> of) : of_(std::move(of)) {
  if (of_ != nullptr) of_->add(1);
}

Deliveries::One::~One() {
  if (of_ != nullptr) of_->add(-1);
}

void Deliveries::add(int more) {
  const std::lock_guard lock(mutex_);
  under_way_ += more;
  changed_.notify_all();
}

bool Deliveries::wait(std::chrono::nanoseconds longest) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, longest, [this] { return under_way_ == 0; });
}

}  // namespace riffle
