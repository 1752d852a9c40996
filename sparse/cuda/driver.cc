#include "sparse/cuda/driver.h"

#include <dlfcn.h>

#include <type_traits>

namespace riffle::sparse::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";

// The name of the function that is missing, or null. Names with _v2 are what cuda.h has made of the
// plain ones since CUDA 4; those below that are younger than CUDA 7 would say so.
const char* find(void* library, Driver& d) {
  const char* missing = nullptr;
  const auto one = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
    if (function == nullptr && missing == nullptr) missing = name;
  };
  one("cuInit", d.init);
  one("cuDriverGetVersion", d.version);
  one("cuGetErrorName", d.error_name);
  one("cuGetErrorString", d.error_string);
  one("cuDeviceGetCount", d.device_count);
  one("cuDeviceGet", d.device_get);
  one("cuDeviceGetName", d.device_name);
  one("cuDeviceGetAttribute", d.device_attribute);
  one("cuDevicePrimaryCtxRetain", d.primary_retain);
  one("cuDevicePrimaryCtxRelease_v2", d.primary_release);
  one("cuCtxGetCurrent", d.context_current);
  one("cuCtxGetDevice", d.context_device);
  one("cuCtxPushCurrent_v2", d.context_push);
  one("cuCtxPopCurrent_v2", d.context_pop);
  one("cuModuleLoadDataEx", d.module_load);
  one("cuModuleUnload", d.module_unload);
  one("cuModuleGetFunction", d.module_function);
  one("cuMemAlloc_v2", d.allocate);
  one("cuMemFree_v2", d.release);
  one("cuMemcpyHtoDAsync_v2", d.copy_in);
  one("cuMemcpyDtoDAsync_v2", d.copy);
  one("cuMemcpyDtoHAsync_v2", d.copy_out);
  one("cuStreamCreate", d.stream_create);
  one("cuStreamDestroy_v2", d.stream_destroy);
  one("cuStreamSynchronize", d.stream_wait);
  one("cuLaunchKernel", d.launch);
  return missing;
}

riffle::Result<Driver> load() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    const std::string reason = why != nullptr ? why : "";
    if (reason.find("No such file") != std::string::npos || reason.empty()) {
      return system_error(std::string("no CUDA device: ") + kLibrary + " not found");
    }
    return system_error("no CUDA device: " + reason);
  }
  Driver driver{};
  if (const char* const missing = find(library, driver); missing != nullptr) {
    return system_error(std::string("no CUDA device: ") + kLibrary + " has no " + missing +
                        ", a driver for CUDA 11 or later is needed");
  }
  if (const Status started = driver.check(driver.init(0), "cuInit"); !started) {
    return system_error("no CUDA device: " + started.message());
  }
  return driver;  // stays loaded: functions of it may be called until the process ends
}

}  // namespace

const riffle::Result<Driver>& Driver::get() {
  static const riffle::Result<Driver> driver = load();
  return driver;
}

Status Driver::check(Result result, const char* what) const {
  if (result == 0) return Status::ok();
  const char* name = nullptr;
  const char* words = nullptr;
  error_name(result, &name);
  error_string(result, &words);
  return system_error(std::string(what) + ": " +
                      (name != nullptr ? name : "error " + std::to_string(result)) +
                      (words != nullptr ? std::string(", ") + words : ""));
}

}  // namespace riffle::sparse::cuda
