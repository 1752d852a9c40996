// Memory on a NUMA node of choice, by the kernel's own call: no libnuma. Any thread.
#pragma once

#include <cstddef>

#include "topology/base/status.h"

namespace riffle {

// Pages of [data, data + bytes) that are touched from now on come from NUMA node `node` while it
// has some, else from others. `data` is page aligned. An error where the kernel or a sandbox
// refuses; the memory is usable all the same.
Status prefer_numa_node(int node, void* data, std::size_t bytes);

}  // namespace riffle
