#include "plugin/collective/sparse/sparse_work.h"

#include "topology/base/printed.h"

namespace riffle {

std::string describe(const SparseWork& work) {
  const std::uint64_t segments = work.segments;
  if (segments == 0) return "";
  const auto each = [&](std::uint64_t total) {
    return static_cast<double>(total) / static_cast<double>(segments);
  };
  const std::uint64_t busy_ns = work.select_ns + work.memory_ns;
  const std::uint64_t rest_ns = work.span_ns > busy_ns ? work.span_ns - busy_ns : 0;
  return printed(
      "%llu segments of %.0f elements, each with %.1f messages, %.0f entries and %.0f "
      "bytes sent; time per segment: %.3f ms adding, selecting and summing, %.3f ms "
      "writing the result, %.3f ms network and waiting; %llu done again densely",
      static_cast<unsigned long long>(segments), each(work.elements), each(work.messages),
      each(work.entries), each(work.bytes), each(work.select_ns) / 1e6, each(work.memory_ns) / 1e6,
      each(rest_ns) / 1e6, static_cast<unsigned long long>(work.redone));
}

}  // namespace riffle
