// A T that the processes forked from a test share with it.
#pragma once

#include <sys/mman.h>

#include <new>

namespace riffle {

template <class T>
class SharedMemory {
 public:
  SharedMemory() {
    void* at = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    value_ = new (at) T();
  }
  ~SharedMemory() { munmap(value_, sizeof(T)); }
  SharedMemory(const SharedMemory&) = delete;

  T* operator->() const { return value_; }

 private:
  T* value_;
};

}  // namespace riffle
