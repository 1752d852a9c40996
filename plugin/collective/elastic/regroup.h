// Regroup: how the nodes that are left after a loss agree on which of them go on, and from where.
//
// A node that misses another freezes: from then on it sends nothing of the running term. It begins
// a round and tells all nodes it reaches its state: which it misses, what it last agreed on, what
// it has finished. A node that hears of a higher round than its own joins it. In one round:
//   1. state       all to all. The lowest-numbered node that has heard all it reaches coordinates;
//                  it plans for those that all reach each other, if they hold a quorum of the last
//                  membership that any of them agreed on (membership.h).
//   2. verdict     coordinator to those it names. A node that takes it permanently excludes the
//                  others: it tells them, and hears nothing of them any more.
//   3. accepted    a node has made what the verdict asks for, and every frame of earlier terms
//                  between it and the others named has arrived.
//   4. commit      all have accepted: the verdict's term begins.
// A further loss of a node the verdict names, or before there is one, leads to a higher round; a
// loss of any other is no longer of interest.
//
// Why two sides never go on: a term begins only when all it names have accepted it, and they never
// work with any other again. So a side is either within the latest term or outside. Within, it
// needs a quorum of that term, or, not knowing that it began, of an earlier, larger one, which is
// more; outside, it would need a quorum of an earlier one, of which the term's members are the
// majority. Terms of different coordinators in one round name different nodes, for a node takes
// the word only of the lowest it reaches.
//
// Goodbyes. A node that needs no other any more says so to all it reaches, once, and from then on
// takes part in no round: its state is not waited for, no verdict names it, and a quorum is one of
// the others. It agrees with any side that goes on, for it issues nothing. Why two sides still
// never go on: of two disjoint sides each holds more than half of what it counts from, a membership
// without those whose goodbyes it has heard. None of those is on either side, so both count from at
// least the two sides together, which cannot both be more than half of that. (A node that has taken
// a verdict says goodbye only to those it names, which work with no other.)
//
// Members that work may be sent away (expel): a node that hears of it in a state tells them so
// and counts them as lost, and so does not wait for them. As any loss, it makes sides only smaller.
//
// Waiting: for nodes that are reached, whose loss is noticed (Mesh: RIFFLE_PEER_TIMEOUT). A node
// that does not answer although others have lost it is given up after patience_ns, and the whole
// after deadline_ns.
//
// Threads: the mesh's owner. Messages of one peer must arrive in order (control_channel.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugin/collective/elastic/membership.h"
#include "topology/base/status.h"

namespace riffle {

class ByteReader;

class Regroup {
 public:
  static constexpr const char* kLeftByItself = "it closed its communicator";
  static constexpr std::uint32_t kState = 40, kVerdict = 41, kAccepted = 42, kCommit = 43,
                                 kExcluded = 44, kGone = 45;
  static bool is_mine(std::uint32_t kind) { return kind >= kState && kind <= kGone; }
  using Bytes = std::vector<std::uint8_t>;

  struct Verdict {
    Membership next;  // its term is the round's number
    Bytes content;    // of steps.plan
  };
  struct Steps {
    std::function<void(int peer, std::uint32_t kind, Bytes message)> send;
    // No frame of the running term leaves from now on.
    std::function<void()> freeze;
    // Frames of all terms so far to a peer. Asked when frozen.
    std::function<std::uint64_t(int peer)> frames_to;
    // What the coordinator has to know of this node's work. Asked when frozen.
    std::function<Bytes()> account;
    // Coordinator: what those members are to do, given their accounts (same order). Calls back
    // once, now or later.
    std::function<void(const Membership& next, const std::vector<Bytes>& accounts,
                       std::function<void(Result<Bytes>)>)>
        plan;
    // Makes what the verdict asks for, waits until `frames[i]` frames of all terms have come from
    // next.nodes[i] and all of ours have left, then calls back. A new call supersedes the former.
    std::function<void(const Verdict& verdict, const std::vector<std::uint64_t>& frames,
                       std::function<void(Status)>)>
        install;
    // The verdict's term begins.
    std::function<void(const Verdict& verdict)> go;
    // Nothing more of this peer; what was sent to it still goes out.
    std::function<void(int peer)> dismiss;
    // This node cannot go on.
    std::function<void(const std::string& why)> end;
    std::function<std::uint64_t(std::uint64_t delay_ns, std::function<void()>)> call_later;
    std::function<void(std::uint64_t timer)> cancel;
  };
  struct Options {
    std::uint64_t patience_ns = 300'000'000;
    std::uint64_t deadline_ns = 65'000'000'000;
  };

  // All nodes 0 .. size-1 have agreed on term 0.
  Regroup(int rank, int size, const Options& options, Steps steps);
  ~Regroup();
  Regroup(const Regroup&) = delete;
  Regroup& operator=(const Regroup&) = delete;

  void lost(int peer, const std::string& why);
  // The others are to go on without members that work, each with why: they are told so, and count
  // as lost, all at once. None of them is this node, nor already lost.
  void expel(const std::vector<std::pair<int, std::string>>& members);
  // The peer has said goodbye; it may still be reached.
  void left(int peer);
  // Not ok: the peer does not speak our language.
  Status received(int peer, std::uint32_t kind, const Bytes& message);
  // A frame of this term has come, faster than the coordinator's word: its sender knows that the
  // term has begun. If this node has accepted it, it begins here too.
  void begin_if_accepted(std::uint64_t term);
  // Ends this node's part: the others hear that it is gone.
  // `is_cut_off`: it reaches too few others, and so does any node that reaches it.
  void leave(const std::string& why, bool is_cut_off = false);
  // No timer, no step any more.
  void stop();

  bool is_running() const { return phase_ == Phase::kRunning; }  // a term; nothing is being agreed
  bool is_over() const { return is_over_; }
  const Membership& membership() const { return last_; }
  // Why a peer is no longer reached; empty: it is.
  const std::string& why_lost(int peer) const { return why_lost_[peer]; }
  std::uint64_t round() const { return round_; }
  // Of the members, those whose loss this node does not know of, itself among them.
  std::vector<int> reached() const;
  bool has_left(int peer) const { return has_left_[peer]; }

 private:
  enum class Phase { kRunning, kGathering, kAccepting, kAccepted };
  struct State {
    std::vector<int> missing, left;
    Membership last;
    std::uint64_t frames = 0;  // to us
    Bytes account;
  };

  void tell_state();
  void tell_state_to(int peer);
  void tell_verdict(const Verdict& verdict);
  void tell_round(int peer, std::uint32_t kind);
  void tell_excluded(int peer, const std::string& why);
  void tell_gone(const std::string& why, bool is_cut_off);
  // False: it is mangled.
  bool hear(int peer, std::uint32_t kind, ByteReader* reader);
  bool hear_excluded(ByteReader* reader);
  bool hear_gone(int peer, ByteReader* reader);
  bool hear_state(int peer, std::uint64_t round, ByteReader* reader);
  bool hear_verdict(int peer, std::uint64_t round, ByteReader* reader);

  bool send_away(int member, const std::string& why);
  void begin(std::uint64_t round);
  void gather();
  bool no_state_names_lower() const;
  void decide(const std::vector<int>& reached, const Membership& last);
  void take(Verdict verdict);
  void install_if_heard();
  void accept(std::uint64_t round, const Status& outcome);
  void commit_if_all_accepted();
  void commit();
  void look_for_silent();
  void end(const std::string& why, bool is_cut_off = false);
  void end_cut_off(std::size_t reached, std::size_t side, std::size_t voters);
  void end_cut_off(const std::string& how);
  void cancel_timers();
  std::vector<int> missing() const;
  std::vector<int> known_to_have_left() const;
  std::vector<int> without_left(std::vector<int> nodes) const;
  // The nodes that may go on, as far as this node knows.
  std::vector<int> present() const { return without_left(reached()); }
  bool counts_on(int peer) const;
  void retry_without(int peer);
  std::string why_lost_text() const;
  bool has_lost(int peer) const { return !why_lost_[peer].empty(); }

  const int rank_, size_;
  const Options options_;
  const Steps steps_;
  Phase phase_ = Phase::kRunning;
  bool is_over_ = false;
  Membership last_;  // that this node knows to have begun
  std::uint64_t round_ = 0;
  std::vector<std::string> why_lost_;
  std::vector<bool> has_left_;
  std::map<int, std::string> expelled_;   // why
  std::vector<bool> ended_on_this_side_;  // we reached them, and they had no quorum
  std::map<int, State> states_;           // of this round
  Bytes account_;                         // our own
  std::vector<int> planned_for_;          // while steps_.plan runs
  std::optional<Verdict> verdict_;
  bool is_installing_ = false;
  std::vector<int> accepted_;  // coordinator
  std::optional<std::uint64_t> patience_timer_, deadline_timer_;
};

}  // namespace riffle
