// Page-aligned memory of its own mapping: untouched pages cost nothing, and after
// release() any access faults, which is how tests see a plugin that touches a region too late.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <utility>

namespace riffle::host {

class MemoryRegion {
 public:
  MemoryRegion() = default;
  ~MemoryRegion() { release(); }
  MemoryRegion(MemoryRegion&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)) {}
  MemoryRegion& operator=(MemoryRegion&& o) noexcept {
    release();
    data_ = std::exchange(o.data_, nullptr);
    bytes_ = std::exchange(o.bytes_, 0);
    return *this;
  }

  // False: the system has no memory.
  bool allocate(std::size_t bytes) {
    release();
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    data_ = static_cast<std::byte*>(p);
    bytes_ = bytes;
    return true;
  }
  void release() {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace riffle::host
