#include "topology/base/nearest.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace riffle {
namespace {

// Levenshtein's distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearest(std::string_view name, std::span<const std::string_view> names) {
  const auto distance = [name](std::string_view other) { return edit_distance(name, other); };
  const auto found = std::ranges::min_element(names, {}, distance);
  return found == names.end() ? std::string_view() : *found;
}

}  // namespace riffle
