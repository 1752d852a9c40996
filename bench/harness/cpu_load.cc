#include "bench/harness/cpu_load.h"

#include <fstream>
#include <string>

namespace riffle::bench {

CpuLoad::Ticks CpuLoad::read() {
  std::ifstream file("/proc/stat");
  std::string word;
  file >> word;  // "cpu": the sum over all processors
  Ticks ticks;
  double value = 0;
  // user nice system idle iowait irq softirq steal: idle and waiting for a disk are not work. Time
  // taken by other virtual machines (steal) counts as busy: we cannot have it.
  for (int i = 0; i < 8 && file >> value; ++i) {
    ticks.total += value;
    if (i != 3 && i != 4) ticks.busy += value;
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
