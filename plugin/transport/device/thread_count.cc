#include "plugin/transport/device/thread_count.h"

#include <algorithm>

namespace riffle {
namespace {

constexpr int kFirstMbps = 10'000, kFurtherMbps = 20'000;

}  // namespace

int threads_for(const std::vector<Device>& devices, std::size_t processors) {
  int mbps = 0;
  for (const Device& device : devices) {
    if (device.knows_speed) mbps = std::max(mbps, device.speed_mbps);
  }
  const int beyond = std::max(0, mbps - kFirstMbps);
  const int wanted = 1 + (beyond + kFurtherMbps - 1) / kFurtherMbps;
  const auto cores = static_cast<int>(std::min<std::size_t>(processors / 2, kMostThreads));
  return std::clamp(wanted, 1, std::max(cores, 1));
}

int thread_count(const std::string& setting, const std::vector<Device>& devices,
                 std::size_t processors) {
  return setting == "auto" ? threads_for(devices, processors) : std::stoi(setting);
}

}  // namespace riffle
