// How busy this machine's processors are, from /proc/stat.
#pragma once

namespace riffle::bench {

class CpuLoad {
 public:
  void start();
  void stop();
  // Busy share of all processors over the started intervals, 0..1.
  double load() const { return total_ > 0 ? busy_ / total_ : 0; }

 private:
  struct Ticks {
    double busy = 0, total = 0;
  };
  static Ticks read();
  Ticks begin_;
  double busy_ = 0, total_ = 0;
};

}  // namespace riffle::bench
