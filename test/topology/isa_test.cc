#include "topology/base/isa.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace riffle::isa_test {
namespace {

// What the kernel says of the first processor, less what it does not save for threads.
std::set<std::string> flags_of_the_kernel() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(Isa, TheProcessorHasWhatTheKernelSaysOfIt) {
  const auto flags = flags_of_the_kernel();
  if (flags.empty()) GTEST_SKIP() << "no flags in /proc/cpuinfo: not an x86-64";
  const auto has = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!flags.contains(name)) return false;
    }
    return true;
  };
  const bool avx2 = has({"avx2", "f16c", "popcnt"});
  EXPECT_TRUE(processor_has(Isa::kPortable));
  EXPECT_EQ(processor_has(Isa::kAvx2), avx2);
  EXPECT_EQ(processor_has(Isa::kAvx512),
            avx2 && has({"avx512f", "avx512bw", "avx512dq", "avx512vl"}));
  EXPECT_FALSE(processor_has(Isa::kNeon));
}

}  // namespace
}  // namespace riffle::isa_test
