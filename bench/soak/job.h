// One job of the soak, drawn from a number: its network, its settings, and what is done to it. A
// pure function.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace riffle::bench::soak {

struct Fault {
  enum class Kind { kKill, kStop, kCut, kSlow };
  Kind kind = Kind::kStop;
  int node = 0;
  int after_ms = 0;  // the fault before has ended, or all are connected
  int for_ms = 0;    // but for kKill
  bool is_loss = false;
};

struct Job {
  std::uint64_t seed = 0;
  std::string network;  // a profile's name, or random:SEED
  int communicators = 1;
  bool goes_on = false;  // RIFFLE_ON_LOSS=continue
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<Fault> faults;  // at most one is a loss: the last
  int calm_ms = 0;            // after them
};

inline constexpr int kPeerTimeoutS = 6;

Job draw_job(std::uint64_t seed);
std::string describe(const Job& job);

}  // namespace riffle::bench::soak
