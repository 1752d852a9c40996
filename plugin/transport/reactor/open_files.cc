#include "plugin/transport/reactor/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include "topology/base/folder.h"

namespace riffle {
namespace {

constexpr rlim_t kEnough = 1 << 20;

// Descriptors in use below `limit`; none: the system does not say.
std::optional<std::size_t> in_use(rlim_t limit) {
  std::size_t count = 0;
  const int error = for_each_name("/proc/self/fd", [&](std::string_view name) {
    rlim_t number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number < limit) ++count;
  });
  if (error == EMFILE) return limit;
  if (error != 0) return std::nullopt;
  return count - 1;  // this one's own
}

}  // namespace

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = std::min(files.rlim_max, kEnough);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

std::string lack_of_open_files(std::size_t more) {
  rlimit files{};
  if (more == 0 || ::getrlimit(RLIMIT_NOFILE, &files) != 0) return "";
  const std::optional<std::size_t> used = in_use(files.rlim_cur);
  if (!used || *used + more <= files.rlim_cur) return "";
  return "its process may open " + std::to_string(files.rlim_cur) + " files (ulimit -n), has " +
         std::to_string(*used) + " open and needs " + std::to_string(more) +
         " more: raise the hard limit (ulimit -Hn)";
}

}  // namespace riffle
