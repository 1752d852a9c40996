// Members: the nodes of a communicator at work. It runs their operations, and decides what follows
// when a node is lost or leaves. Two ways: the same nodes to the end (fixed_members.h), or those
// that are left (survivors.h, RIFFLE_ON_LOSS=continue).
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/collective/base/frames.h"
#include "plugin/collective/elastic/membership.h"
#include "plugin/collective/engine/operation.h"
#include "plugin/telemetry/comm_record.h"

namespace riffle {

// What it asks of the session.
struct MemberHooks {
  std::function<void(int peer, std::uint32_t kind, std::vector<std::uint8_t>)> send;
  std::function<PlanBasis()> basis;  // node 0
  ReplanHooks replan;
  std::function<std::string(int node)> name_of;
  // A loss was survived; `what`: a human-readable line.
  std::function<void(const LossRecord& loss, const std::string& what)> went_on;
  // A peer's frames do not fit, and it counts as lost: as FrameSink::lost().
  std::function<void(int peer, const Status&)> lost;
  // A peer broke the protocol, which is an error of all nodes, not a loss.
  std::function<void(int peer, const Status&)> violation;
  // All others hear `fault`, and then this node's operations fail.
  std::function<void(const std::string& fault)> spread;
  // All others hear `fault`; nothing else.
  std::function<void(const std::string& fault)> tell;
  // This node's operations fail now, ...
  std::function<void(const std::string& why)> fail;
  // ... or, as it cannot go on and has told the others, when that has left.
  std::function<void(const std::string& why)> ended;
};

class Members : public FrameHandler {
 public:
  // Takes the plan of connect.
  virtual Status install(const PlanSet& plans, bool knows_lengths) = 0;
  // Connect is over, and all nodes have installed it; node 0 gives the plan.
  virtual void start(const PlanSet& plans) = 0;

  virtual void submit(Operation* operation) = 0;

  // kData, kCredit, kLength, kSparse, kDone; and messages of its own (kControl, kFault), which
  // this tells apart.
  virtual bool owns_message(const FrameHeader& header) const = 0;
  // Messages outside of terms, from start() on.
  virtual bool is_mine(std::uint32_t kind) const = 0;
  virtual void received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) = 0;

  // A peer closed its communicator; a peer is gone without a goodbye. From start() on.
  virtual void departed(int peer) = 0;
  virtual void lost(int peer, const std::string& why) = 0;

  // The others hear that this node is gone, and why.
  virtual void leave(const std::string& why) = 0;
  // All operations fail, nothing is sent any more.
  virtual void fail() = 0;
  // The job has no more use for it, and waits for none of the operations that are under way. True:
  // others need them; end() when is_needed() no longer says so, or when patience ends.
  virtual bool retire() = 0;
  virtual bool is_needed() const = 0;
  // The end: operations that run fail. True if the others may hear a goodbye: it leaves nothing
  // open that concerns them.
  virtual bool end() = 0;

  // The nodes that operations wait for, as far as it can tell; nothing: none is under way.
  virtual std::optional<std::vector<int>> waits_for() const = 0;
  virtual bool has_failed() const = 0;
  // The nodes that work together.
  virtual const Membership& membership() const = 0;
};

}  // namespace riffle
