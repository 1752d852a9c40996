#include "plugin/collective/base/thread_time.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

namespace riffle {

std::uint64_t thread_wanted_ns(pid_t thread) {
  const std::string path = "/proc/self/task/" + std::to_string(thread) + "/schedstat";
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  std::array<char, 96> text{};
  const ssize_t got = read(file, text.data(), text.size() - 1);
  close(file);
  unsigned long long ran = 0, waited = 0;
  if (got <= 0 || std::sscanf(text.data(), "%llu %llu", &ran, &waited) != 2) return 0;
  return ran + waited;
}

}  // namespace riffle
