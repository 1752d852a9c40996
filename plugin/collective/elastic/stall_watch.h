// StallWatch: operations are under way, the peers are alive, and yet nothing moves. What the peer
// timeout does not see, because heartbeats go on: a node that has not called, or a fault of ours.
//
// When nothing has moved for the limit, a node tells all others whom it waits for. Most wait for
// nodes that wait themselves; so a moment later, with what the others told, the node that is waited
// for and does not wait is named. Once something moves, or nothing is left to move, the watch
// begins anew. Time in which this process did not run itself does not count.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "plugin/transport/base/timer_service.h"
#include "topology/base/status.h"

namespace riffle {

class Mesh;

class StallWatch {
 public:
  using Nodes = std::vector<int>;
  struct Hooks {
    // In rising order, perhaps none that it can tell. Nothing: no operation is under way.
    std::function<std::optional<Nodes>()> waits_for;
    // To all others, for heard().
    std::function<void(const std::vector<std::uint8_t>&)> tell;
    // Once for each time that nothing moves: the limit is over, and `node` waits for these.
    std::function<void(int node, const Nodes& whom)> stalled;
  };
  // All must outlive this. `limit_ns` 0: it does nothing.
  StallWatch(const Mesh* mesh, TimerService* timers, std::uint64_t limit_ns, Hooks hooks);
  ~StallWatch() { stop(); }
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;

  void start();
  void stop();
  // A frame of an operation came or left.
  void moved() { has_moved_ = true; }
  Status heard(int peer, const std::vector<std::uint8_t>& message);

 private:
  void look();
  void schedule();
  void begin_anew(std::uint64_t since_ns);
  void speak(const Nodes& own);

  const Mesh* const mesh_;
  TimerService* const timers_;
  const std::uint64_t limit_ns_, period_ns_;
  const Hooks hooks_;
  bool has_moved_ = false, has_told_ = false, has_spoken_ = false;
  std::uint64_t since_ns_ = 0;  // nothing has moved
  std::uint64_t due_ns_ = 0;
  std::map<int, Nodes> told_;  // by others
  std::optional<std::uint64_t> timer_;
};

}  // namespace riffle
