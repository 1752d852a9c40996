// Arguments that NET and COLLNET have in common, turned from NCCL's types into ours.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "plugin/entry/regions.h"
#include "topology/base/status.h"

namespace riffle::entry {

// Sizes are int up to v8 and size_t from v9 on.
template <class Size>
Status to_size(Size size, std::size_t* out) {
  if (std::cmp_less(size, 0)) return invalid_argument("negative size " + std::to_string(size));
  *out = static_cast<std::size_t>(size);
  return Status::ok();
}

template <class Size>
Status register_region(Regions& regions, void* data, Size size, int type, void** mhandle) {
  *mhandle = nullptr;
  std::size_t bytes = 0;
  if (Status status = to_size(size, &bytes); !status) return status;
  auto region = regions.acquire(data, bytes, type);
  if (!region) return region.status();
  *mhandle = *region;
  return Status::ok();
}

template <class Fence>  // void(const void* base, std::size_t size)
void deregister_region(Regions& regions, void* mhandle, Fence&& fence) {
  if (mhandle == nullptr) return;
  const void* base = nullptr;
  std::size_t size = 0;
  if (regions.release(static_cast<Region*>(mhandle), &base, &size)) fence(base, size);
}

}  // namespace riffle::entry
