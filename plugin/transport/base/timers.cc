#include "plugin/transport/base/timers.h"

namespace riffle {

std::uint64_t Timers::add(std::uint64_t when_ns, std::function<void()> call) {
  const std::uint64_t id = next_id_++;
  when_of_.emplace(id, when_ns);
  try {
    calls_.emplace(std::pair(when_ns, id), std::move(call));
  } catch (...) {
    when_of_.erase(id);
    throw;
  }
  return id;
}

void Timers::cancel(std::uint64_t id) {
  const auto it = when_of_.find(id);
  if (it == when_of_.end()) return;
  calls_.erase({it->second, id});
  when_of_.erase(it);
}

std::function<void()> Timers::take_due(std::uint64_t now_ns) {
  const auto first = calls_.begin();
  if (first == calls_.end() || first->first.first > now_ns) return {};
  std::function<void()> call = std::move(first->second);
  when_of_.erase(first->first.second);
  calls_.erase(first);
  return call;
}

}  // namespace riffle
