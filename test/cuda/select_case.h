// One selection on a device and the same one by the processor's Selector, compared. Used with the
// emulated device and, in test/gpu, with a real one.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "sparse/cuda/selector.h"
#include "sparse/select.h"
#include "test/cuda/numbers_of_tests.h"

namespace riffle::sparse::cuda {

struct SelectCase {
  std::vector<std::uint8_t> gradient;
  Element element = Element::kFloat32;
  std::size_t count = 0;
  std::vector<float> residual;  // or empty
  std::size_t k = 0;
  std::uint32_t least = 0;  // not 0: all of this magnitude instead of k
  bool has_short_indices = false;
  bool sums_in_place = false;
};

struct Selected {
  std::vector<std::uint32_t> indices;
  std::vector<float> values;
  std::vector<float> sum;  // what is left; with a residual only
};

inline Selected by_processor(const SelectCase& c) {
  sparse::Selector selector;
  Selected result;
  const void* data = c.gradient.data();
  Element element = c.element;
  if (!c.residual.empty()) {
    result.sum.resize(c.count);
    selector.accumulate(data, element, c.residual.data(), c.count, result.sum.data());
    data = result.sum.data();
    element = Element::kFloat32;
  }
  Entries entries;
  if (c.least == 0) {
    selector.top_k(data, element, c.count, c.k, entries);
  } else {
    for (std::size_t i = 0; i < c.count; ++i) {
      const float value = load(data, element, i);
      if (magnitude_of(value) >= c.least) entries.append(static_cast<std::uint32_t>(i), value);
    }
  }
  result.indices.assign(entries.indices().begin(), entries.indices().end());
  result.values.assign(entries.values().begin(), entries.values().end());
  if (!c.residual.empty()) {
    for (const std::uint32_t i : result.indices) result.sum[i] = 0;
  }
  return result;
}

inline Result<Selected> on_device(Device& device, cuda::Selector& selector, const SelectCase& c,
                                  std::size_t capacity) {
  Buffer gradient(device), residual(device), sum(device), indices(device), values(device);
  const std::size_t index_size = c.has_short_indices ? 2 : 4;
  const bool has_residual = !c.residual.empty();
  const auto fill = [&](Buffer& buffer, const void* from, std::size_t bytes) {
    Status s = buffer.make_room(bytes);
    return s && from != nullptr && bytes > 0 ? device.copy_in(buffer.as<void>(), from, bytes) : s;
  };
  for (const Status& s :
       {fill(gradient, c.gradient.data(), c.gradient.size()),
        fill(residual, c.residual.data(), c.residual.size() * 4),
        fill(sum, nullptr, c.residual.size() * 4), fill(indices, nullptr, capacity * index_size),
        fill(values, nullptr, capacity * 4)}) {
    if (!s) return s;
  }
  Input input{gradient.as<void>(), c.element, c.count, nullptr, nullptr};
  if (has_residual) {
    input.residual = residual.as<float>();
    input.sum = c.sums_in_place ? residual.as<float>() : sum.as<float>();
  }
  const Output output{indices.as<void>(), values.as<float>(), capacity, c.has_short_indices};
  const Status launched =
      c.least == 0 ? selector.top_k(input, c.k, output) : selector.at_least(input, c.least, output);
  if (!launched) return launched;
  const Result<std::size_t> count = selector.finish();
  if (!count) return count.status();

  Selected result;
  result.indices.resize(*count);
  result.values.resize(*count);
  if (has_residual) result.sum.resize(c.count);
  std::vector<std::uint8_t> raw(*count * index_size);
  for (const Status& s : {device.copy_out(raw.data(), indices.as<void>(), raw.size()),
                          device.copy_out(result.values.data(), values.as<void>(), *count * 4),
                          device.copy_out(result.sum.data(), input.sum, result.sum.size() * 4)}) {
    if (!s) return s;
  }
  for (std::size_t i = 0; i < *count; ++i) {
    std::memcpy(&result.indices[i], &raw[i * index_size], index_size);  // little-endian
  }
  return result;
}

// What is different; empty if nothing is.
inline std::string difference(const Selected& is, const Selected& expected) {
  if (is.indices.size() != expected.indices.size()) {
    return std::to_string(is.indices.size()) + " entries, expected " +
           std::to_string(expected.indices.size());
  }
  for (std::size_t i = 0; i < is.indices.size(); ++i) {
    if (is.indices[i] != expected.indices[i] || !is_same(is.values[i], expected.values[i])) {
      return "entry " + std::to_string(i) + " is " + std::to_string(is.values[i]) + " at " +
             std::to_string(is.indices[i]) + ", expected " + std::to_string(expected.values[i]) +
             " at " + std::to_string(expected.indices[i]);
    }
  }
  for (std::size_t i = 0; i < expected.sum.size(); ++i) {
    if (!is_same(is.sum[i], expected.sum[i])) {
      return "what is left of element " + std::to_string(i) + " is " + std::to_string(is.sum[i]) +
             ", expected " + std::to_string(expected.sum[i]);
    }
  }
  return {};
}

// Runs both; says what is different or went wrong.
inline std::string compare(Device& device, cuda::Selector& selector, const SelectCase& c) {
  const Selected expected = by_processor(c);
  const Result<Selected> is = on_device(device, selector, c, expected.indices.size());
  return is ? difference(*is, expected) : is.status().message();
}

}  // namespace riffle::sparse::cuda
