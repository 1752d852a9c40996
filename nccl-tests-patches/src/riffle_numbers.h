// Numbers as the type that travels has them, to the device and back.
#pragma once

#include <cstring>
#include <vector>

#include "common.h"
#include "riffle_check.h"
#include "riffle_gradients.h"

namespace riffle_tests {

inline float as_half(float value) { return __half2float(__float2half(value)); }
#if HAVE_BF16
inline float as_bfloat16(float value) { return __bfloat162float(__float2bfloat16(value)); }
#endif

struct Numbers {
  bool is_known;
  Spacing spacing;
  Rounding rounding;
};

inline Numbers numbers_of(ncclDataType_t type) {
  if (type == ncclFloat) return {true, float32_spacing(), as_it_is};
  if (type == ncclHalf) return {true, float16_spacing(), as_half};
#if HAVE_BF16
  if (type == ncclBfloat16) return {true, bfloat16_spacing(), as_bfloat16};
#endif
  return {false, {}, nullptr};
}

inline testResult_t to_device(void* device, const std::vector<float>& numbers,
                              ncclDataType_t type) {
  if (type == ncclFloat) {
    CUDACHECK(cudaMemcpy(device, numbers.data(), numbers.size() * 4, cudaMemcpyHostToDevice));
    return testSuccess;
  }
  if (type == ncclHalf) {
    std::vector<half> narrow(numbers.size());
    for (size_t i = 0; i < numbers.size(); ++i) narrow[i] = __float2half(numbers[i]);
    CUDACHECK(cudaMemcpy(device, narrow.data(), numbers.size() * 2, cudaMemcpyHostToDevice));
    return testSuccess;
  }
#if HAVE_BF16
  std::vector<__nv_bfloat16> narrow(numbers.size());
  for (size_t i = 0; i < numbers.size(); ++i) narrow[i] = __float2bfloat16(numbers[i]);
  CUDACHECK(cudaMemcpy(device, narrow.data(), numbers.size() * 2, cudaMemcpyHostToDevice));
#endif
  return testSuccess;
}

// `digest`: of the bytes as they are; may be null.
inline testResult_t from_device(std::vector<float>* numbers, const void* device,
                                ncclDataType_t type, long long* digest) {
  std::vector<char> bytes(numbers->size() * wordSize(type));
  CUDACHECK(cudaMemcpy(bytes.data(), device, bytes.size(), cudaMemcpyDeviceToHost));
  if (digest != nullptr) *digest = digest_of(bytes.data(), bytes.size());
  if (type == ncclFloat) {
    memcpy(numbers->data(), bytes.data(), bytes.size());
  } else if (type == ncclHalf) {
    const half* wide = reinterpret_cast<const half*>(bytes.data());
    for (size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] = __half2float(wide[i]);
  } else {
#if HAVE_BF16
    const __nv_bfloat16* wide = reinterpret_cast<const __nv_bfloat16*>(bytes.data());
    for (size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] = __bfloat162float(wide[i]);
#endif
  }
  return testSuccess;
}

}  // namespace riffle_tests
