// What a measured process does: makes communicators, uses them, idles, ends them, round by round,
// and tells the launcher what it has at each stage beyond what it had with the plugin loaded.
#pragma once

#include <array>
#include <string>

#include "bench/footprint/process_use.h"
#include "lab/nccl_host/bootstrap.h"
#include "topology/base/status.h"

namespace riffle::bench {

struct Order {
  std::string plugin;
  int communicators = 1;
  int rounds = 1;
  int idle_s = 20;  // 0: not measured
};

enum class Stage { kConnected, kUsed, kDestroyed };
inline constexpr std::array<const char*, 3> kStageNames = {"connected", "used", "destroyed"};

struct Reading {
  int round = 1;
  Stage stage = Stage::kConnected;
  ProcessUse use;
};

// On every rank; all readings go to the launcher as notes.
Status run_rounds(host::Bootstrap& bootstrap, const Order& order);

// The reading in a note.
Reading reading_of(const std::string& note);

}  // namespace riffle::bench
