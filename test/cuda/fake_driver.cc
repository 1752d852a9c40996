// A stand-in for libcuda.so.1: one device, whose memory is the host's and whose kernels run on the
// emulator. What is enqueued is done when the stream is waited for, not before. As strict as the
// driver's documentation: without a current context nothing but contexts can be had.
//
// FAKE_CUDA tells it to refuse: "no-device", "old" (compute capability 7.5), "no-ptx" (takes
// machine code only). Where NVIDIA's cuda.h is at hand, it is checked that its functions have these
// types.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#if defined(RIFFLE_CUDA_HEADER)
#include <cuda.h>
#else
using CUresult = int;
using CUdevice = int;
using CUdevice_attribute = int;
using CUjit_option = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUuuid = struct CUuuid_st;
#endif

#include "sparse/cuda/driver.h"
#include "test/cuda/emulated_device.h"

namespace riffle::sparse::cuda {
namespace {

constexpr int kInvalidValue = 1;
constexpr int kNotFound = 500;
constexpr int kInvalidContext = 201;
constexpr int kUnsupportedPtx = 222;

struct State {
  EmulatedDevice device{5, 4};
  std::vector<CUcontext> current;
  std::vector<std::function<Status()>> enqueued;
  std::map<CUdeviceptr, std::size_t> memory;
  int primary = 0, modules = 0, streams = 0;
};
State& state() {
  static State all;
  return all;
}
std::string_view wish() {
  const char* const value = std::getenv("FAKE_CUDA");
  return value != nullptr ? value : "";
}
CUresult code(int number) { return static_cast<CUresult>(number); }

// A call that needs a context.
CUresult in_context(const std::function<int()>& call) {
  return code(state().current.empty() ? kInvalidContext : call());
}

// The address and what follows it lie in one allocation.
bool is_valid(CUdeviceptr at, std::size_t bytes) {
  auto next = state().memory.upper_bound(at);
  if (next == state().memory.begin()) return false;
  --next;
  return at + bytes <= next->first + next->second;
}
void* pointer(CUdeviceptr at) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(at)); }

template <class T>
T handle(std::size_t number) {
  return reinterpret_cast<T>(number);
}

std::size_t size_of_arguments(Kernel kernel) {
  return kernel == Kernel::kScatterAdd ? sizeof(ScatterArguments)
         : kernel == Kernel::kReduce   ? sizeof(ReduceArguments)
                                       : sizeof(SelectArguments);
}

#if defined(RIFFLE_CUDA_HEADER)
// Passed to a function in the same way: alike in size, and both pointers or both numbers.
template <class A, class B>
constexpr bool kAlike = sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>;
template <class A, class B>
struct AlikeFunctions : std::false_type {};
template <class A, class... As, class B, class... Bs>
requires(sizeof...(As) == sizeof...(Bs)) struct AlikeFunctions<A (*)(As...), B (*)(Bs...)>
    : std::bool_constant<kAlike<A, B> && (kAlike<As, Bs> && ...)> {
};
#define RIFFLE_ALIKE(ours, theirs) \
  static_assert(AlikeFunctions<decltype(Driver::ours), decltype(&theirs)>::value)
RIFFLE_ALIKE(init, cuInit);
RIFFLE_ALIKE(version, cuDriverGetVersion);
RIFFLE_ALIKE(error_name, cuGetErrorName);
RIFFLE_ALIKE(error_string, cuGetErrorString);
RIFFLE_ALIKE(device_count, cuDeviceGetCount);
RIFFLE_ALIKE(device_get, cuDeviceGet);
RIFFLE_ALIKE(device_name, cuDeviceGetName);
RIFFLE_ALIKE(device_attribute, cuDeviceGetAttribute);
RIFFLE_ALIKE(primary_retain, cuDevicePrimaryCtxRetain);
RIFFLE_ALIKE(primary_release, cuDevicePrimaryCtxRelease_v2);
RIFFLE_ALIKE(context_current, cuCtxGetCurrent);
RIFFLE_ALIKE(context_device, cuCtxGetDevice);
RIFFLE_ALIKE(context_push, cuCtxPushCurrent_v2);
RIFFLE_ALIKE(context_pop, cuCtxPopCurrent_v2);
RIFFLE_ALIKE(module_load, cuModuleLoadDataEx);
RIFFLE_ALIKE(module_unload, cuModuleUnload);
RIFFLE_ALIKE(module_function, cuModuleGetFunction);
RIFFLE_ALIKE(allocate, cuMemAlloc_v2);
RIFFLE_ALIKE(release, cuMemFree_v2);
RIFFLE_ALIKE(copy_in, cuMemcpyHtoDAsync_v2);
RIFFLE_ALIKE(copy, cuMemcpyDtoDAsync_v2);
RIFFLE_ALIKE(copy_out, cuMemcpyDtoHAsync_v2);
RIFFLE_ALIKE(stream_create, cuStreamCreate);
RIFFLE_ALIKE(stream_destroy, cuStreamDestroy_v2);
RIFFLE_ALIKE(stream_wait, cuStreamSynchronize);
RIFFLE_ALIKE(launch, cuLaunchKernel);
static_assert(Driver::kMultiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(Driver::kMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(Driver::kMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(Driver::kNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kInvalidValue == CUDA_ERROR_INVALID_VALUE && kNotFound == CUDA_ERROR_NOT_FOUND &&
              kInvalidContext == CUDA_ERROR_INVALID_CONTEXT &&
              kUnsupportedPtx == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
#endif

}  // namespace
}  // namespace riffle::sparse::cuda

using namespace riffle::sparse::cuda;  // NOLINT
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED CUresult cuInit(unsigned) { return code(0); }
// NVRTC asks for what NVIDIA's libraries share among themselves, and does without it.
EXPORTED CUresult cuGetExportTable(const void**, const CUuuid*) { return code(kNotFound); }
EXPORTED CUresult cuDriverGetVersion(int* version) {
  *version = 12080;
  return code(0);
}
EXPORTED CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = static_cast<int>(error) == kUnsupportedPtx ? "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
                                                     : "CUDA_ERROR_OF_THE_FAKE";
  return code(0);
}
EXPORTED CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = static_cast<int>(error) == kInvalidContext ? "no context is current" : "refused";
  return code(0);
}
EXPORTED CUresult cuDeviceGetCount(int* count) {
  *count = wish() == "no-device" ? 0 : 1;
  return code(0);
}
EXPORTED CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = 0;
  return code(ordinal == 0 ? 0 : kInvalidValue);
}
EXPORTED CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(size));
  return code(0);
}
EXPORTED CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  const bool is_old = wish() == "old";
  switch (static_cast<int>(attribute)) {
    case Driver::kMajor:
      *value = is_old ? 7 : 9;
      return code(0);
    case Driver::kMinor:
      *value = is_old ? 5 : 0;
      return code(0);
    case Driver::kMultiprocessors:
      *value = 4;
      return code(0);
    default:
      return code(kInvalidValue);
  }
}
EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  ++state().primary;
  *context = handle<CUcontext>(1);
  return code(0);
}
EXPORTED CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  --state().primary;
  return code(0);
}
EXPORTED CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = state().current.empty() ? nullptr : state().current.back();
  return code(0);
}
EXPORTED CUresult cuCtxGetDevice(CUdevice* device) {
  return in_context([&] {
    *device = 0;
    return 0;
  });
}
EXPORTED CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (context == nullptr || state().primary == 0) return code(kInvalidContext);
  state().current.push_back(context);
  return code(0);
}
EXPORTED CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return in_context([&] {
    *context = state().current.back();
    state().current.pop_back();
    return 0;
  });
}
EXPORTED CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                     void**) {
  return in_context([&] {
    const bool is_machine_code = std::memcmp(image,
                                             "\x7f"
                                             "ELF",
                                             4) == 0;
    if (!is_machine_code && wish() == "no-ptx") return kUnsupportedPtx;
    ++state().modules;
    *module = handle<CUmodule>(2);
    return 0;
  });
}
EXPORTED CUresult cuModuleUnload(CUmodule) {
  return in_context([&] {
    --state().modules;
    return 0;
  });
}
EXPORTED CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  return in_context([&] {
    for (std::size_t i = 0; i < kKernelNames.size(); ++i) {
      if (std::string_view(kKernelNames[i]) != name) continue;
      *function = handle<CUfunction>(i + 1);
      return 0;
    }
    return kNotFound;
  });
}
EXPORTED CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  return in_context([&] {
    if (bytes == 0) return kInvalidValue;
    void* const memory = *state().device.allocate(bytes);
    *address = reinterpret_cast<std::uintptr_t>(memory);
    state().memory[*address] = bytes;
    return 0;
  });
}
EXPORTED CUresult cuMemFree_v2(CUdeviceptr address) {
  return in_context([&] {
    if (state().memory.erase(address) == 0) return kInvalidValue;
    state().device.release(pointer(address));
    return 0;
  });
}
EXPORTED CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                       CUstream) {
  return in_context([&] {
    if (!is_valid(to, bytes)) return kInvalidValue;
    state().enqueued.emplace_back([=] { return state().device.copy(pointer(to), from, bytes); });
    return 0;
  });
}
EXPORTED CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                                       CUstream) {
  return in_context([&] {
    if (!is_valid(to, bytes) || !is_valid(from, bytes)) return kInvalidValue;
    state().enqueued.emplace_back(
        [=] { return state().device.copy(pointer(to), pointer(from), bytes); });
    return 0;
  });
}
EXPORTED CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  return in_context([&] {
    if (!is_valid(from, bytes)) return kInvalidValue;
    state().enqueued.emplace_back([=] { return state().device.copy(to, pointer(from), bytes); });
    return 0;
  });
}
EXPORTED CUresult cuStreamCreate(CUstream* stream, unsigned) {
  return in_context([&] {
    ++state().streams;
    *stream = handle<CUstream>(3);
    return 0;
  });
}
EXPORTED CUresult cuStreamDestroy_v2(CUstream) {
  return in_context([&] {
    --state().streams;
    return 0;
  });
}
EXPORTED CUresult cuStreamSynchronize(CUstream) {
  return in_context([&] {
    riffle::Status done = riffle::Status::ok();
    for (const auto& work : state().enqueued) {
      if (done) done = work();
    }
    state().enqueued.clear();
    return done ? 0 : kInvalidValue;
  });
}
EXPORTED CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y,
                                 unsigned block_z, unsigned, CUstream, void** arguments,
                                 void** extra) {
  return in_context([&] {
    const bool is_launch = grid_x > 0 && grid_y == 1 && grid_z == 1 && block_x == kBlockThreads &&
                           block_y == 1 && block_z == 1 && extra == nullptr;
    if (!is_launch) return kInvalidValue;
    const auto kernel = static_cast<Kernel>(reinterpret_cast<std::uintptr_t>(function) - 1);
    std::vector<char> copy(size_of_arguments(kernel));
    std::memcpy(copy.data(), arguments[0], copy.size());
    state().enqueued.emplace_back(
        [=] { return state().device.launch(kernel, grid_x, copy.data()); });
    return 0;
  });
}

// For the test: contexts, modules, streams and allocations that were not given back.
EXPORTED int fake_cuda_open_things() {
  return state().primary + state().modules + state().streams +
         static_cast<int>(state().memory.size() + state().current.size());
}
