// SyncAgreement: how all nodes enter and leave a relaxed mode at the same call.
//
// With the reports of a replanning interval come those about the calls: does every node know them
// as the same repeating sequence, and for how long? If so, node 0 orders the mode, naming the
// digest of the sequence; a node that does not know it as its own, or has no memory, refuses, and
// nothing changes. The first call is agreed upon as the first chunk of a plan is (plan_switch.h).
// If later any node is in doubt about its calls, or digests do not match, node 0 orders
// exact sums, and waits the longer before it tries again the more often that happened.
//
// Where nodes were lost (survivors.h), a mode runs that another agreement began: a relaxed one goes
// on in the survivors' groups; the sparse one, whose schedule is for all nodes, is ended here to
// begin anew.
//
// A mode that never began is told in one line, at the end at the latest: short jobs are over before
// the intervals are that it takes.
//
// Threads: the mesh's owner; states are made in the Background.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "plugin/collective/adapt/plan_switch.h"
#include "plugin/collective/base/background.h"
#include "plugin/collective/base/byte_io.h"
#include "plugin/collective/base/mode_participant.h"

namespace riffle {

struct SyncAgreementOptions {
  SyncMode mode = SyncMode::kExact;
  std::uint64_t warmup_steps = 10;
  std::uint64_t least_horizon_ns = 50'000'000;
};

// Node 0, each once per change: for the log and the record.
struct ModeChange {
  SyncMode mode = SyncMode::kExact;
  std::uint64_t first_call = 0;
  std::string cause;
};

class SyncAgreement {
 public:
  using Send = std::function<void(int peer, std::uint32_t kind, std::vector<std::uint8_t> message)>;
  struct Hooks {
    int number = -1;  // of this node, for messages (plan_switch.h)
    Send send;
    std::function<std::uint64_t()> now_ns;
    // What relaxed calls are to be cut into, by the current plan. Node 0.
    std::function<std::uint64_t()> chunk_bytes;
    // How the sparse mode should run now; an error says why better not. Node 0; null if never
    // asked.
    std::function<Result<SparseOrder>()> sparse_order;
    std::function<void(const ModeChange&)> changed;  // node 0; may be null
  };
  static constexpr std::uint64_t kLongestPause = 64;  // replanning intervals
  static constexpr std::uint64_t kToldAfter = 16;     // replanning intervals without a beginning

  SyncAgreement(int rank, int size, SyncAgreementOptions options, ModeParticipant* participant,
                Background* background, Hooks hooks);

  // Reports of one replanning interval: the own one first, then those of children are added.
  void begin_gathering() { gathered_ = participant_->report(); }
  void put(ByteWriter* writer) const;
  static SyncReport get(ByteReader* reader);
  void add(const SyncReport& report) { gathered_.add(report); }
  // Node 0: all are in. `round_ns`: what messages down and up the tree take. `may_begin`: there are
  // groups for a mode.
  void interval_ended(std::uint64_t round_ns, bool may_begin = true);

  bool is_mine(std::uint32_t kind) const { return switch_.is_mine(kind); }
  bool is_running() const { return switch_.is_running(); }
  // Node 0: the mode runs; true until the next replanning interval where it has just ended.
  bool is_in_force() const { return is_relaxed_; }
  Status received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
    return switch_.received(peer, kind, message);
  }
  void departed(int peer) {
    has_departures_ = true;
    switch_.departed(peer);
  }
  // The job makes no more calls; before stop(), and not after a failure. Node 0 tells why no mode
  // began.
  void job_ended();
  // Nothing is decided any more.
  void stop() { is_over_ = true; }

 private:
  void order(SyncMode mode, std::string cause, std::uint64_t round_ns);
  void prepare(const PlanSwitch::Order& order, const std::function<void(Status)>& prepared);
  void decided(const Result<std::uint64_t>& first_call);
  void better_not(const std::string& why);
  void pause();

  const bool is_root_;
  const int size_;
  const SyncAgreementOptions options_;
  ModeParticipant* const participant_;
  Background* const background_;
  const Hooks hooks_;
  PlanSwitch switch_;
  bool is_over_ = false, has_departures_ = false;
  SyncReport gathered_;

  // Node 0.
  ModeOrder ordered_;
  std::string cause_, better_not_;
  std::string waits_for_;  // what the first beginning lacks; empty: no interval has told
  bool was_told_ = false;  // the log says why no mode begins
  bool is_relaxed_ = false, is_ending_ = false;
  std::uint64_t unknown_intervals_ = 0;
  std::uint64_t pause_ = 1, intervals_to_wait_ = 0;
};

}  // namespace riffle
