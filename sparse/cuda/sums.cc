#include "sparse/cuda/sums.h"

#include <algorithm>
#include <string>

#include "sparse/cuda/selector.h"

namespace riffle::sparse::cuda {
namespace {

Status check(std::size_t count) {
  if (count <= kMostElements) return Status::ok();
  return invalid_argument("sums on a GPU: the number of elements is " + std::to_string(count) +
                          ", accepted: up to " + std::to_string(kMostElements));
}

// A thread takes several elements where there are more than the device runs threads at a time.
unsigned blocks_for(const Device& device, std::size_t count) {
  const std::size_t all = (count + kBlockThreads - 1) / kBlockThreads;
  return static_cast<unsigned>(std::min<std::size_t>(all, 16 * device.multiprocessors()));
}

}  // namespace

Status scatter_add(Device& device, const void* indices, bool has_short_indices, const float* values,
                   std::size_t count, float* dense) {
  if (Status s = check(count); !s || count == 0) return s;
  const ScatterArguments arguments{dense, indices, values, static_cast<unsigned>(count),
                                   has_short_indices ? 1U : 0U};
  return device.launch(Kernel::kScatterAdd, blocks_for(device, count), &arguments);
}

Status reduce(Device& device, std::span<const void* const> inputs, Element element,
              std::size_t count, void* out, Element out_element) {
  if (inputs.empty() || inputs.size() > kMostInputs) {
    return invalid_argument("sums on a GPU: the number of inputs is " +
                            std::to_string(inputs.size()) + ", accepted: 1 to " +
                            std::to_string(kMostInputs));
  }
  if (Status s = check(count); !s || count == 0) return s;
  ReduceArguments arguments{};
  std::ranges::copy(inputs, arguments.inputs);
  arguments.out = out;
  arguments.number = static_cast<unsigned>(inputs.size());
  arguments.element = static_cast<unsigned>(element);
  arguments.out_element = static_cast<unsigned>(out_element);
  arguments.count = static_cast<unsigned>(count);
  return device.launch(Kernel::kReduce, blocks_for(device, count), &arguments);
}

}  // namespace riffle::sparse::cuda
