#include "sparse/cuda/device.h"

#include <array>
#include <cstdint>

#include "sparse/cuda/code.h"
#include "sparse/cuda/driver.h"
#include "sparse/cuda/nvrtc.h"

namespace riffle::sparse::cuda {
namespace {

// Makes a context the calling thread's current one for as long as it lives.
class Current {
 public:
  Current(const Driver& driver, Driver::Context context)
      : driver_(driver), status_(driver.check(driver.context_push(context), "cuCtxPushCurrent")) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Driver::Context popped = nullptr;
    if (status_) driver_.context_pop(&popped);
  }
  const Status& status() const { return status_; }

 private:
  const Driver& driver_;
  Status status_;
};

class Gpu final : public Device {
 public:
  explicit Gpu(const Driver& driver) : driver_(driver) {}

  ~Gpu() override {
    if (context_ != nullptr) {
      const Current current(driver_, context_);
      if (stream_ != nullptr) driver_.stream_destroy(stream_);
      if (module_ != nullptr) driver_.module_unload(module_);
    }
    if (has_primary_) driver_.primary_release(device_);
  }

  Status start() {
    if (Status s = choose_context(); !s) return s;
    const Current current(driver_, context_);
    if (!current.status()) return current.status();
    int major = 0, minor = 0, processors = 0;
    std::array<char, 128> name{};
    for (const auto& [value, attribute] : {std::pair{&major, Driver::kMajor},
                                           {&minor, Driver::kMinor},
                                           {&processors, Driver::kMultiprocessors}}) {
      const int result = driver_.device_attribute(value, attribute, device_);
      if (Status s = driver_.check(result, "cuDeviceGetAttribute"); !s) return s;
    }
    driver_.device_name(name.data(), static_cast<int>(name.size()) - 1, device_);
    architecture_ = std::to_string(major) + std::to_string(minor);
    description_ = std::string(name.data()) + ", compute capability " + std::to_string(major) +
                   "." + std::to_string(minor);
    if (major < 8) return system_error(description_ + ", accepted: 8.0 and later");
    multiprocessors_ = static_cast<unsigned>(processors);
    if (Status s = load_code(); !s) return s;
    return driver_.check(driver_.stream_create(&stream_, Driver::kNonBlocking), "cuStreamCreate");
  }

  std::string description() const override { return description_ + ", code " + code_; }
  unsigned multiprocessors() const override { return multiprocessors_; }

  Result<void*> allocate(std::size_t bytes) override {
    Driver::Address address = 0;
    const Status s = in_context([&] { return driver_.allocate(&address, bytes); }, "cuMemAlloc");
    if (!s) return Status(s.code(), s.message() + " (" + std::to_string(bytes) + " bytes)");
    return pointer(address);
  }
  void release(void* memory) override {
    const Current current(driver_, context_);
    if (!current.status()) return;
    driver_.stream_wait(stream_);
    driver_.release(address(memory));
  }

  // Of no bytes there may be no address either, which the driver refuses.
  Status copy_in(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return Status::ok();
    const auto call = [&] {
      const int result = driver_.copy_in(address(to), from, bytes, stream_);
      // Of page-locked memory the driver takes no copy.
      return result != 0 ? result : driver_.stream_wait(stream_);
    };
    return in_context(call, "cuMemcpyHtoDAsync");
  }
  Status copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return Status::ok();
    const auto call = [&] { return driver_.copy(address(to), address(from), bytes, stream_); };
    return in_context(call, "cuMemcpyDtoDAsync");
  }
  Status copy_out(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return wait();
    const auto call = [&] {
      const int result = driver_.copy_out(to, address(from), bytes, stream_);
      return result != 0 ? result : driver_.stream_wait(stream_);
    };
    return in_context(call, "cuMemcpyDtoHAsync");
  }

  Status launch(Kernel kernel, unsigned blocks, const void* arguments) override {
    const auto index = static_cast<std::size_t>(kernel);
    const auto call = [&] {
      void* parameters[] = {const_cast<void*>(arguments)};
      return driver_.launch(functions_[index], blocks, 1, 1, kBlockThreads, 1, 1, 0, stream_,
                            parameters, nullptr);
    };
    return in_context(call, kKernelNames[index]);
  }
  Status wait() override {
    return in_context([&] { return driver_.stream_wait(stream_); }, "cuStreamSynchronize");
  }

 private:
  static void* pointer(Driver::Address address) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  static Driver::Address address(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
  }

  template <class Call>
  Status in_context(const Call& call, const char* what) {
    const Current current(driver_, context_);
    if (!current.status()) return current.status();
    return driver_.check(call(), what);
  }

  Status choose_context() {
    int devices = 0;
    if (Status s = driver_.check(driver_.device_count(&devices), "cuDeviceGetCount"); !s) return s;
    if (devices == 0) return system_error("no CUDA device: the driver knows none");
    driver_.context_current(&context_);
    if (context_ != nullptr) {
      return driver_.check(driver_.context_device(&device_), "cuCtxGetDevice");
    }
    if (Status s = driver_.check(driver_.device_get(&device_, 0), "cuDeviceGet"); !s) return s;
    const int retained = driver_.primary_retain(&context_, device_);
    has_primary_ = retained == 0;
    return driver_.check(retained, "cuDevicePrimaryCtxRetain");
  }

  // PTX that is newer than the driver is refused; machine code for this very GPU need not be.
  Status load_code() {
    std::string problems = "no code for the GPU: ";
    if (const std::string ptx(built_in_ptx()); ptx.empty()) {
      problems += "none was built in";
    } else {
      Status loaded = load_image(ptx.c_str());
      code_ = "built in";
      if (loaded) return loaded;
      problems += "built in, " + loaded.message();
    }
    const Result<Nvrtc> nvrtc = Nvrtc::open();
    if (!nvrtc) return system_error(problems + "; " + nvrtc.status().message());
    const Result<std::string> image = nvrtc->compile("sm_" + architecture_);
    if (!image) return system_error(problems + "; " + image.status().message());
    code_ = "by NVRTC " + nvrtc->version();
    const Status loaded = load_image(image->data());
    return loaded ? loaded : system_error(problems + "; " + code_ + ", " + loaded.message());
  }

  Status load_image(const void* image) {
    const int result = driver_.module_load(&module_, image, 0, nullptr, nullptr);
    if (Status s = driver_.check(result, "cuModuleLoadDataEx"); !s) return s;
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const int found = driver_.module_function(&functions_[i], module_, kKernelNames[i]);
      if (Status s = driver_.check(found, kKernelNames[i]); !s) return s;
    }
    return Status::ok();
  }

  const Driver& driver_;
  Driver::Device device_ = 0;
  Driver::Context context_ = nullptr;
  bool has_primary_ = false;
  Driver::Module module_ = nullptr;
  Driver::Stream stream_ = nullptr;
  std::array<Driver::Function, kKernels> functions_{};
  unsigned multiprocessors_ = 1;
  std::string architecture_, description_, code_;
};

}  // namespace

Result<std::unique_ptr<Device>> open_gpu() {
  const Result<Driver>& driver = Driver::get();
  if (!driver) return driver.status();
  auto gpu = std::make_unique<Gpu>(*driver);
  if (Status started = gpu->start(); !started) return started;
  return std::unique_ptr<Device>(std::move(gpu));
}

}  // namespace riffle::sparse::cuda
