// Sums on a device. Both only enqueue (Device::wait waits). The same bits as the processor's, in
// every run: additions have a fixed order, NaN is the one quiet NaN.
#pragma once

#include <cstddef>
#include <span>

#include "sparse/cuda/device.h"
#include "sparse/element.h"

namespace riffle::sparse::cuda {

// dense[index] = plus(dense[index], value) for every entry (entries.h). On the device; no index may
// occur twice or lie outside of `dense`: read_message (wire.h) has seen to that.
Status scatter_add(Device& device, const void* indices, bool has_short_indices, const float* values,
                   std::size_t count, float* dense);

// out[i] = the sum of inputs[j][i], j ascending, in float32, stored as element.h does. 1 to
// kMostInputs inputs on the device; `out` may be one of them if `element` is `out_element`.
Status reduce(Device& device, std::span<const void* const> inputs, Element element,
              std::size_t count, void* out, Element out_element);

}  // namespace riffle::sparse::cuda
