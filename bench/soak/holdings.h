// What a process has open and runs: what is left of something that should have cleaned up.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace riffle::bench::soak {

struct Holdings {
  std::map<std::string, std::string> descriptors;  // their numbers, what they are
  std::size_t threads = 0;
};

// `with_files`: those that are open count as well.
Holdings holdings(bool with_files);

// What there is more than `before`, in words; empty: nothing. Waits at most so long for what is
// still on its way to its end.
std::string left_since(const Holdings& before, std::chrono::seconds most, bool with_files);

}  // namespace riffle::bench::soak
