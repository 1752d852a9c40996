#include "sparse/entries.h"

namespace riffle::sparse {

std::size_t add(const Entries& first, const Entries& second, Entries& sum) {
  sum.make_room(first.count() + second.count());
  const std::size_t count_a = first.count(), count_b = second.count();
  const std::uint32_t* a = first.indices().data();
  const std::uint32_t* b = second.indices().data();
  const float* values_a = first.values().data();
  const float* values_b = second.values().data();
  std::uint32_t* indices = sum.raw_indices();
  float* values = sum.raw_values();
  std::size_t i = 0, j = 0, end = 0, both = 0;
  const auto put = [&](std::uint32_t index, float value) {
    indices[end] = index;
    values[end] = value;
    end += value != 0 ? 1 : 0;
  };
  while (i < count_a && j < count_b) {  // without branches: the order is random
    const bool takes_a = a[i] <= b[j];
    const bool takes_b = b[j] <= a[i];
    const float one = *(takes_a ? values_a + i : values_b + j);
    const float all = plus(values_a[i], values_b[j]);
    put(takes_a ? a[i] : b[j], takes_a && takes_b ? all : one);
    both += takes_a && takes_b ? 1 : 0;
    i += takes_a ? 1 : 0;
    j += takes_b ? 1 : 0;
  }
  for (; i < count_a; ++i) put(a[i], values_a[i]);
  for (; j < count_b; ++j) put(b[j], values_b[j]);
  sum.set_count(end);
  return count_a + count_b - both;
}

}  // namespace riffle::sparse
