// The memory regions that NCCL registered on one connection or coll object.
//
// NCCL registers the same region many times (twice per channel), and frees the memory after the
// *first* deregistration although other handles of it remain. So regions are counted per (address,
// length), and the first release of one is the fence: the caller must then make sure that nothing
// touches the memory any more. Thread safe: registrations come from NCCL's service thread.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

#include "topology/base/status.h"

namespace riffle::entry {

struct Region {
  const void* base = nullptr;
  std::size_t size = 0;
  int handles = 0;
  bool is_fenced = false;
};

class Regions {
 public:
  // The memory handle for NCCL; stays valid until its last release. Host memory only: another
  // pointer type is refused.
  Result<Region*> acquire(const void* base, std::size_t size, int pointer_type);

  // True when this is the first release since the region was last acquired: fence it, whose bounds
  // `base` and `size` then hold.
  bool release(Region* region, const void** base, std::size_t* size);

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, std::size_t>, Region> regions_;  // nodes stay in place
};

}  // namespace riffle::entry
