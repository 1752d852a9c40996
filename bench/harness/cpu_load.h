// How busy the processors are that this process may use, from /proc/stat.
#pragma once

namespace riffle::bench {

class CpuLoad {
 public:
  void start();
  void stop();
  // Busy share of them over the started intervals, 0..1; -1: they were too short for the
  // kernel's clock ticks.
  double load() const { return total_ >= kMinTicks ? busy_ / total_ : -1; }

 private:
  static constexpr double kMinTicks = 20;
  struct Ticks {
    double busy = 0, total = 0;
  };
  static Ticks read();
  Ticks begin_;
  double busy_ = 0, total_ = 0;
};

}  // namespace riffle::bench
