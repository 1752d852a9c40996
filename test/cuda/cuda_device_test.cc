// The way to a GPU by the driver, with a stand-in for the driver that runs kernels on the emulator.
#include "sparse/cuda/device.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "sparse/cuda/code.h"
#include "sparse/cuda/nvrtc.h"
#include "test/cuda/select_case.h"

namespace riffle::sparse::cuda::cuda_device_test {
namespace {

int open_things() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  auto* const count = reinterpret_cast<int (*)()>(dlsym(library, "fake_cuda_open_things"));
  EXPECT_NE(count, nullptr) << "this is no fake";
  return count();
}

bool can_load() { return !built_in_ptx().empty() || Nvrtc::open().is_ok(); }

std::string refusal(const char* wish) {
  setenv("FAKE_CUDA", wish, 1);
  const auto gpu = open_gpu();
  unsetenv("FAKE_CUDA");
  EXPECT_EQ(open_things(), 0);
  return gpu.status().message();
}

TEST(CudaDevice, SelectsThroughTheDriverAndGivesEverythingBack) {
  if (!can_load()) GTEST_SKIP() << "neither PTX was built in nor is there NVRTC";
  {
    auto gpu = open_gpu();
    ASSERT_TRUE(gpu.is_ok()) << gpu.status().message();
    EXPECT_TRUE((*gpu)->description().starts_with("Fake GPU, compute capability 9.0, code "));
    EXPECT_EQ((*gpu)->multiprocessors(), 4U);
    Selector selector(**gpu);
    std::mt19937 random(1);
    const Numbers numbers = kinds_of_numbers()[0];
    for (int call = 0; call < 2; ++call) {
      std::vector<float> values(20011);
      for (float& v : values) v = numbers.at(random, 0);
      const SelectCase c{.gradient = stored(values, Element::kFloat32),
                         .count = values.size(),
                         .residual = values,
                         .k = 200};
      EXPECT_EQ(compare(**gpu, selector, c), "");
    }
    EXPECT_GT(open_things(), 0);
  }
  EXPECT_EQ(open_things(), 0);
}

TEST(CudaDevice, DriversThatRefusePtxGetMachineCode) {
  if (!Nvrtc::open().is_ok()) GTEST_SKIP() << Nvrtc::open().status().message();
  setenv("FAKE_CUDA", "no-ptx", 1);
  auto gpu = open_gpu();
  unsetenv("FAKE_CUDA");
  ASSERT_TRUE(gpu.is_ok()) << gpu.status().message();
  EXPECT_NE((*gpu)->description().find("by NVRTC"), std::string::npos) << (*gpu)->description();
}

TEST(CudaDevice, SaysWhyThereIsNone) {
  EXPECT_EQ(refusal("no-device"), "no CUDA device: the driver knows none");
  EXPECT_EQ(refusal("old"), "Fake GPU, compute capability 7.5, accepted: 8.0 and later");
}

TEST(CudaDevice, ErrorsNameTheCallAndTheDriversWords) {
  if (!can_load()) GTEST_SKIP() << "neither PTX was built in nor is there NVRTC";
  auto gpu = open_gpu();
  ASSERT_TRUE(gpu.is_ok()) << gpu.status().message();
  EXPECT_EQ((*gpu)->allocate(0).status().message(),
            "cuMemAlloc: CUDA_ERROR_OF_THE_FAKE, refused (0 bytes)");
  EXPECT_EQ((*gpu)->launch(Kernel::kMark, 0, nullptr).message(),
            "riffle_mark: CUDA_ERROR_OF_THE_FAKE, refused");
}

TEST(CudaCode, NvrtcThatIsNotThereIsNamed) {
  const auto nvrtc = Nvrtc::open("/nowhere/libnvrtc.so.13");
  EXPECT_TRUE(nvrtc.status().message().starts_with("no NVRTC: /nowhere/libnvrtc.so.13"))
      << nvrtc.status().message();
}

TEST(CudaCode, NvrtcSaysWhatItDidNotAccept) {
  const auto nvrtc = Nvrtc::open();
  if (!nvrtc) GTEST_SKIP() << nvrtc.status().message();
  const auto code = nvrtc->compile("sm_1");
  EXPECT_FALSE(code.is_ok());
  EXPECT_NE(code.status().message().find("for sm_1: NVRTC_ERROR"), std::string::npos)
      << code.status().message();
}

}  // namespace
}  // namespace riffle::sparse::cuda::cuda_device_test
