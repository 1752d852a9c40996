// SlowExpulsion: sends nodes away that stay slower than RIFFLE_MIN_RATE, all at once or none. Those
// that are fast enough must be a quorum of all nodes of connect, which is more than one of the
// term's: else slow nodes that are noticed at different times would go one after the other, each
// time with a quorum of the rest. The node that decides, the lowest of the term, stays, though it
// counts as slow if it is.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/collective/elastic/membership.h"
#include "plugin/transport/base/frame_sink.h"
#include "plugin/transport/base/timer_service.h"

namespace riffle {

class Mesh;

class SlowExpulsion {
 public:
  // Nodes, each with why it is sent away.
  using Expel = std::function<void(const std::vector<std::pair<int, std::string>>&)>;
  SlowExpulsion(Mesh* mesh, TimerService* timers, std::int64_t least_kbps,
                std::function<std::string(int node)> name_of, Expel expel);
  ~SlowExpulsion() { stop(); }
  SlowExpulsion(const SlowExpulsion&) = delete;
  SlowExpulsion& operator=(const SlowExpulsion&) = delete;

  // The lowest node of the term, while it runs: ReplanHooks::too_slow. `expel` is called later.
  void too_slow(const std::vector<SlowNode>& places, const Membership& members);
  // `expel` is not called any more.
  void stop();

 private:
  Mesh* const mesh_;
  TimerService* const timers_;
  const std::int64_t least_kbps_;
  const std::function<std::string(int)> name_of_;
  const Expel expel_;
  std::optional<std::uint64_t> timer_;
  bool said_too_many_ = false, said_it_stays_ = false;
};

}  // namespace riffle
