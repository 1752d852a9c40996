#include "plugin/transport/reactor/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace riffle {
namespace {

constexpr rlim_t kEnough = 1 << 20;

}  // namespace

void raise_open_files() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t wanted = std::min(files.rlim_max, kEnough);
  if (files.rlim_cur >= wanted) return;
  files.rlim_cur = wanted;
  (void)::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace riffle
