#include "sparse/entries.h"

namespace riffle::sparse {

std::size_t add(const Entries& first, const Entries& second, Entries& sum) {
  sum.clear();
  sum.make_room(first.count() + second.count());
  const auto a = first.indices();
  const auto b = second.indices();
  std::size_t i = 0, j = 0, different = 0;
  while (i < a.size() || j < b.size()) {
    ++different;
    const bool take_a = j == b.size() || (i < a.size() && a[i] <= b[j]);
    const bool take_b = i == a.size() || (j < b.size() && b[j] <= a[i]);
    const std::uint32_t index = take_a ? a[i] : b[j];
    float value = 0;
    if (take_a && take_b) {
      value = plus(first.values()[i], second.values()[j]);
    } else {
      value = take_a ? first.values()[i] : second.values()[j];
    }
    i += take_a ? 1 : 0;
    j += take_b ? 1 : 0;
    if (value != 0) sum.append(index, value);
  }
  return different;
}

}  // namespace riffle::sparse
