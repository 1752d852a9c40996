#include "plugin/transport/device/numa_memory.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "plugin/transport/base/errno_text.h"

namespace riffle {

Status prefer_numa_node(int node, void* data, std::size_t bytes) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  constexpr std::size_t kMostNodes = 1024;  // as the kernel's NODES_SHIFT allows
  std::array<unsigned long, kMostNodes / kBits> mask{};
  const auto index = static_cast<std::size_t>(node);
  if (node < 0 || index >= kMostNodes) {
    return invalid_argument("NUMA node " + std::to_string(node) + " (0.." +
                            std::to_string(kMostNodes - 1) + ")");
  }
  mask[index / kBits] = 1UL << (index % kBits);
  // The kernel counts the bits from 1.
  if (::syscall(SYS_mbind, data, bytes, MPOL_PREFERRED, mask.data(), kMostNodes + 1, 0UL) == 0) {
    return Status::ok();
  }
  return system_error("memory on NUMA node " + std::to_string(node) + ": " + errno_text(errno));
}

}  // namespace riffle
