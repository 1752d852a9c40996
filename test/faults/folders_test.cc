// Folders that a job reads: where memory runs out meanwhile, that is an exception, which connect
// makes an error, and not the end of the process.
#include <gtest/gtest.h>

#include <functional>
#include <new>

#include "plugin/transport/reactor/open_files.h"
#include "test/faults/injection.h"
#include "topology/host/nics.h"

namespace riffle::faults {
namespace {

// With every allocation failing once.
void survives(const std::function<void()>& call) {
  std::uint64_t failed = 0;
  for (std::uint64_t k = 1;; ++k) {
    arm(Point::kAllocation, k);
    try {
      const Counting counting;
      call();
    } catch (const std::bad_alloc&) {
      ++failed;
    }
    disarm();
    if (!has_struck()) break;
  }
  EXPECT_GT(failed, 0u);
}

TEST(Folders, NoMemoryIsAnException) {
  survives([] { (void)lack_of_open_files(1 << 30); });
  survives([] { (void)list_nics("/sys"); });
}

}  // namespace
}  // namespace riffle::faults
