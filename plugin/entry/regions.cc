#include "plugin/entry/regions.h"

#include <string>

#include "plugin/abi/constants.h"

namespace riffle::entry {

Result<Region*> Regions::acquire(const void* base, std::size_t size, int pointer_type) {
  if (pointer_type != abi::kPtrHost) {
    return invalid_argument(
        "memory of pointer type " + std::to_string(pointer_type) +
        " cannot be registered: riffle moves host memory (type 1) only and says "
        "so in its properties (ptrSupport)");
  }
  const std::lock_guard lock(mutex_);
  Region& region = regions_[{base, size}];
  region.base = base;
  region.size = size;
  ++region.handles;
  region.is_fenced = false;
  return &region;
}

bool Regions::release(Region* region, const void** base, std::size_t* size) {
  const std::lock_guard lock(mutex_);
  const bool is_first = !region->is_fenced;
  region->is_fenced = true;
  *base = region->base;
  *size = region->size;
  if (--region->handles == 0) regions_.erase({region->base, region->size});
  return is_first;
}

}  // namespace riffle::entry
