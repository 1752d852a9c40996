// A lock on this machine's network that one job at a time holds; advisory. The kernel takes it back
// when the process ends, however it ends. Machine means network namespace: containers with their
// own network, or their own /dev/shm, have their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace riffle {

using NodeLock = std::shared_ptr<void>;  // holds until the last copy is gone

// Does not wait; null if another holder has it. `holder` is the same for all that may share it:
// nodes of one communicator that stand on one machine. Where files cannot be written all get it.
// Any thread.
NodeLock try_node_lock(std::uint64_t holder);
NodeLock try_node_lock(std::uint64_t holder, const std::string& directory);

}  // namespace riffle
