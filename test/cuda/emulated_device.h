// A Device whose kernels run on the emulator and whose memory is the host's, garbage when new.
#pragma once

#include <cstring>
#include <map>
#include <memory>

#include "sparse/cuda/device.h"
#include "test/cuda/emulated_kernels.h"

namespace riffle::sparse::cuda {

class EmulatedDevice final : public Device {
 public:
  // `seed` chooses the order of threads and blocks, anew for every launch.
  explicit EmulatedDevice(std::uint64_t seed = 1, unsigned multiprocessors = 2,
                          const EmulatedKernels& kernels = emulated_kernels())
      : kernels_(kernels), seed_(seed), multiprocessors_(multiprocessors) {}

  std::string description() const override { return "an emulated GPU"; }
  unsigned multiprocessors() const override { return multiprocessors_; }
  Result<void*> allocate(std::size_t bytes) override {
    auto memory = std::make_unique<char[]>(bytes);
    std::memset(memory.get(), 0xa5, bytes);
    void* const at = memory.get();
    memory_[at] = std::move(memory);
    return at;
  }
  void release(void* memory) override { memory_.erase(memory); }
  Status copy_in(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  Status copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return Status::ok();
  }
  Status copy_out(void* to, const void* from, std::size_t bytes) override {
    return copy(to, from, bytes);
  }
  Status launch(Kernel kernel, unsigned blocks, const void* arguments) override;
  Status wait() override { return Status::ok(); }

  std::size_t launches() const { return launches_; }

 private:
  const EmulatedKernels& kernels_;
  std::uint64_t seed_;
  unsigned multiprocessors_;
  std::size_t launches_ = 0;
  std::map<void*, std::unique_ptr<char[]>> memory_;
};

}  // namespace riffle::sparse::cuda
