#include "plugin/identity/known_lengths.h"

#include <map>
#include <mutex>

namespace riffle::known_lengths {

std::shared_ptr<Nodes> of(std::uint64_t comm_id) {
  if (comm_id == 0) return nullptr;
  // Never destroyed: NCCL's threads may outlive static objects.
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::map<std::uint64_t, std::weak_ptr<Nodes>>;
  const std::lock_guard lock(mutex);
  std::erase_if(all, [](const auto& entry) { return entry.second.expired(); });
  if (auto known = all[comm_id].lock()) return known;
  auto made = std::make_shared<Nodes>(0);
  all[comm_id] = made;
  return made;
}

}  // namespace riffle::known_lengths
