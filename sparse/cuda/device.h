// What the host side needs of a GPU: memory, one stream, launches. Behind this interface a test
// runs the kernels without one.
//
// Everything is done in the order of the calls. Pointers that a call names as on the device are
// never followed by the host. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "sparse/cuda/kernels.h"
#include "topology/base/status.h"

namespace riffle::sparse::cuda {

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual std::string description() const = 0;
  virtual unsigned multiprocessors() const = 0;

  virtual Result<void*> allocate(std::size_t bytes) = 0;  // aligned for every type
  virtual void release(void* memory) = 0;                 // once what was launched is done
  // The host's memory may be changed as soon as the call returns.
  virtual Status copy_in(void* to_device, const void* from_host, std::size_t bytes) = 0;
  virtual Status copy(void* to_device, const void* from_device, std::size_t bytes) = 0;
  virtual Status copy_out(void* to_host, const void* from_device, std::size_t bytes) = 0;  // waits
  // `arguments`: the struct that kernels.h names for it; copied before the call returns.
  virtual Status launch(Kernel kernel, unsigned blocks, const void* arguments) = 0;
  // Until all is done; what went wrong in a kernel comes out here (or at a later call).
  virtual Status wait() = 0;
};

// Memory on a device that must outlive it; grows, never shrinks.
class Buffer {
 public:
  explicit Buffer(Device& device) : device_(device) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (memory_ != nullptr) device_.release(memory_);
  }
  // What was there may be lost.
  Status make_room(std::size_t bytes) {
    if (bytes <= bytes_) return Status::ok();
    if (memory_ != nullptr) device_.release(memory_);
    memory_ = nullptr;
    bytes_ = 0;
    const Result<void*> memory = device_.allocate(bytes);
    if (!memory) return memory.status();
    memory_ = *memory;
    bytes_ = bytes;
    return Status::ok();
  }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  Device& device_;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// The GPU of the calling thread's current CUDA context, else GPU 0 and its primary context (which
// the CUDA runtime uses too). Loads the code that was built in, or what NVRTC makes of its source
// where the driver cannot take that. The error says what of all this is missing.
Result<std::unique_ptr<Device>> open_gpu();

}  // namespace riffle::sparse::cuda
