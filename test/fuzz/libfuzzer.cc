// The same targets under libFuzzer, whose input breeding reaches deeper than the driver's.
#include "test/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  riffle::fuzz::try_input({data, size});  // a broken contract escapes as an exception: a crash
  return 0;
}
