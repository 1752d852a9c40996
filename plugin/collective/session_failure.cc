// Session: how a fault becomes the same fault of all nodes, and what is said of one that stands
// still.
#include "plugin/collective/session.h"
#include "plugin/config/log.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/time.h"

namespace riffle {

// Each node that learns of a fault passes it on and only then fails: a process that ends because of
// it must not look like the cause to nodes that have not heard yet.
void Session::spread(const std::string& fault, const std::string& why) {
  if (is_retired()) return no_longer_needed();
  if (!is_connected_ || fault_timer_ || has_failed()) return;
  tell_all(fault);
  fail_soon(why);
}

// What was told has to leave before the process ends because of it.
void Session::fail_soon(const std::string& why) {
  cause_ = why;
  fault_timer_ = timers_->call_at(mesh_->now_ns() + kTellNs, [this] {
    fault_timer_.reset();
    fail(cause_);
  });
}

void Session::fail(const std::string& why) {
  if (is_retired()) return no_longer_needed();
  if (has_failed()) return;
  // What follows from a fault before its time is up is not the cause.
  hooks_.failed(cause_.empty() ? why : cause_);
  fail_operations();
}

StallWatch::Hooks Session::stall_hooks() {
  StallWatch::Hooks hooks;
  hooks.waits_for = [this] { return members_->waits_for(); };
  hooks.tell = [this](const std::vector<std::uint8_t>& message) {
    for (const int node : membership().nodes) {
      if (node == rank_ || departed_[node]) continue;
      control_->send(node, FrameType::kControl, kStallKind, message);
    }
  };
  hooks.stalled = [this](int node, const std::vector<int>& whom) { stalled(node, whom); };
  return hooks;
}

void Session::stalled(int node, const std::vector<int>& whom) {
  std::string names;
  for (const int other : whom) names += (names.empty() ? "" : ", ") + name_of(other);
  const std::string what =
      name_of(node) + " waits for " + (names.empty() ? "the other nodes" : names);
  const std::string since = "a collective has not moved for ";
  if (options_.stall_ns > 0) {
    const std::string fault =
        since + std::to_string(options_.stall_ns / kSecond) + " s (RIFFLE_STALL_S): " + what;
    return spread(fault, fault);
  }
  // The node that waits says so for all.
  log(node == rank_ ? LogLevel::kWarn : LogLevel::kInfo,
      since + std::to_string(options_.stall_warning_ns / kSecond) + " s: " + what +
          " (still waiting; RIFFLE_STALL_S makes this an error)");
}

void Session::failed(const Status& why) {
  if (hooks_.broke) return hooks_.broke(why);
  const std::string fault = own_name() + ": " + why.message();
  abort(fault, fault);
}

void Session::tell_all(const std::string& why) {
  if (has_failed()) return;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_ || departed_[peer]) continue;
    control_->send(peer, FrameType::kFault, kFaultKind,
                   std::vector<std::uint8_t>(why.begin(), why.end()));
  }
}

}  // namespace riffle
