#include "test/cuda/emulated_device.h"

#include "test/cuda/emulator.h"

// Of the section in which device_language.h puts what a block's threads share: the linker's.
extern char __start_riffle_shared[];  // NOLINT
extern char __stop_riffle_shared[];   // NOLINT

namespace riffle::sparse::cuda {

Status EmulatedDevice::launch(Kernel kernel, unsigned blocks, const void* arguments) {
  if (blocks == 0) return invalid_argument("a launch of no blocks, which the driver refuses");
  const EmulatedKernel function = kernels_[static_cast<std::size_t>(kernel)];
  try {
    emulator::run(blocks, kBlockThreads, seed_ + launches_++, __start_riffle_shared,
                  __stop_riffle_shared, [&] { function(arguments); });
  } catch (const emulator::Deadlock& deadlock) {
    return internal_error(deadlock.what());
  }
  return Status::ok();
}

}  // namespace riffle::sparse::cuda
