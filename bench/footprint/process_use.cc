#include "bench/footprint/process_use.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace riffle::bench {
namespace {

namespace fs = std::filesystem;

std::int64_t entries(const char* folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool is_connection(int fd) {
  const int family = option_of(fd, SO_DOMAIN);
  return (family == AF_INET || family == AF_INET6) && option_of(fd, SO_TYPE) == SOCK_STREAM &&
         option_of(fd, SO_ACCEPTCONN) == 0;
}

std::int64_t connections() {
  std::int64_t n = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    n += is_connection(std::stoi(entry.path().filename().string())) ? 1 : 0;
  }
  return n;
}

std::int64_t private_kib() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::int64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Private_Clean:") || line.starts_with("Private_Dirty:")) {
      sum += std::stoll(line.substr(line.find(':') + 1));
    }
  }
  return sum;
}

}  // namespace

ProcessUse process_use() {
  const struct mallinfo2 heap = mallinfo2();
  return {.connections = connections(),
          .descriptors = entries("/proc/self/fd"),
          .threads = entries("/proc/self/task"),
          .private_kib = private_kib(),
          .heap_kib = static_cast<std::int64_t>((heap.uordblks + heap.hblkhd) >> 10)};
}

std::int64_t processor_us() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1'000'000LL + use.ru_utime.tv_usec +
         use.ru_stime.tv_usec;
}

ProcessUse operator-(const ProcessUse& a, const ProcessUse& b) {
  ProcessUse difference;
  for (const UseField& field : kUseFields) {
    difference.*field.value = a.*field.value - b.*field.value;
  }
  return difference;
}

}  // namespace riffle::bench
