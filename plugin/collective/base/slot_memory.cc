#include "plugin/collective/base/slot_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "plugin/transport/device/placement.h"

namespace riffle {

Result<std::unique_ptr<SlotMemory>> SlotMemory::map(std::size_t bytes) {
  if (bytes == 0) bytes = 1;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return system_error("cannot map " + std::to_string(bytes) +
                        " bytes for partial sums: " + std::strerror(errno));
  }
  placement::keep_near_nics(at, bytes);
  return std::unique_ptr<SlotMemory>(new SlotMemory(static_cast<std::byte*>(at), bytes));
}

SlotMemory::~SlotMemory() { munmap(data_, bytes_); }

}  // namespace riffle
