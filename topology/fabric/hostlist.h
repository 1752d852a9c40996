// Slurm's hostlists: "node[01-04,7],login,r[1-2]n[1-3]" as single names.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "topology/base/status.h"

namespace riffle {

// More names than any cluster has; a short text may ask for billions.
inline constexpr std::size_t kMaxHostNames = std::size_t{1} << 18;

// Appends the names to `names` in the order of the text. Leading zeros of a range's first number
// are kept ("n[08-10]" is n08, n09, n10). An error says what is wrong with the text, not where it
// stands; it comes also when `names` would grow beyond kMaxHostNames.
Status expand_hostlist(std::string_view text, std::vector<std::string>& names);

}  // namespace riffle
