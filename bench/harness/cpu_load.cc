#include "bench/harness/cpu_load.h"

#include <sched.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace riffle::bench {

CpuLoad::Ticks CpuLoad::read() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  (void)sched_getaffinity(0, sizeof usable, &usable);
  std::ifstream file("/proc/stat");
  Ticks ticks;
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    int number = -1;
    if (std::sscanf(line.c_str(), "cpu%d", &number) != 1) continue;  // the sum over all
    if (number < CPU_SETSIZE && !CPU_ISSET(number, &usable)) continue;
    std::istringstream fields(line.substr(line.find(' ')));
    // user nice system idle iowait irq softirq steal: idle and waiting for a disk are not work.
    // Time taken by other virtual machines (steal) counts as busy: we cannot have it.
    double value = 0;
    for (int i = 0; i < 8 && fields >> value; ++i) {
      ticks.total += value;
      if (i != 3 && i != 4) ticks.busy += value;
    }
  }
  return ticks;
}

void CpuLoad::start() { begin_ = read(); }

void CpuLoad::stop() {
  const Ticks end = read();
  busy_ += end.busy - begin_.busy;
  total_ += end.total - begin_.total;
}

}  // namespace riffle::bench
