// RateMeter: one node's view of its own link, from the traffic that flows anyway.
//
// Every few milliseconds it hears, per peer, how many bytes went each way and for how long data
// waited for the network. A time in which data waited towards (nearly) all peers in use (sent to in
// the last second, not only just now) was limited by our own sending: what went out then is the
// rate of our link. Where data waits towards a few peers only, those are the limit; they are told
// so (blocked_by) by a bit in the frames, and what they receive meanwhile, mostly from peers that
// wait for them, is the rate of their receiving. All other times only show a rate that the link
// carries at least. Whatever the application limits is thereby left out, not averaged in.
//
// A full link alone is to blame for what waits at it: a node that sends or receives about as
// much as its link was measured to take does not call its peers slow, and tells them so (is_full):
// what waits for it says nothing of their links.
//
// Other communicators of the node, and NET, send over the same NICs, and their bytes are known,
// too: while a direction is the limit, it carries what they carry as well, and all of it together
// is the link's rate. A NIC that is busy with them is as fast as ever; only traffic that is not
// known (of other users, or not Riffle's) leaves less of it. A node whose receiving is full with
// others' bytes says so (is_shared): what waits for it says nothing of the sender's link, either.
//
// Racks with limited uplinks: where data waits towards the other racks, but not within the own one,
// the uplink is the limit; what goes out to other racks meanwhile is this node's part of its rate.
// Peers in other racks are not told that they are slow, for that is not known.
//
// Rates are link rates in kbit/s, as in Fabric: payload times 1514/1448. Pure; no allocation after
// construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace riffle::probe {

// One direction of a node's link over a replanning interval.
struct PassiveRate {
  // With others' bytes, while this direction was the limit (median); 0: it never was.
  std::int64_t limit_kbps = 0;
  std::int64_t peak_kbps = 0;  // what it carried for us at least (90 % quantile over times)
  std::int64_t limit_ms = 0;   // for how long it was the limit
  bool operator==(const PassiveRate&) const = default;
};

struct PassiveReport {
  PassiveRate out, in;
  PassiveRate far;             // out to other racks
  std::int64_t active_ms = 0;  // time with any traffic
  // Others moved so much over the same NICs that these rates are rough.
  bool is_rough = false;
  bool operator==(const PassiveReport&) const = default;
};

// What happened on the link to one peer since the last sample.
struct LinkSample {
  std::uint64_t out_bytes = 0;  // delivered, not only queued
  std::uint64_t in_bytes = 0;
  std::uint64_t busy_ns = 0;       // data was waiting for the network
  bool peer_waits_for_us = false;  // the peer's data waits because of our receiving
  bool peer_is_full = false;       // the peer receives as much as its own link takes
  bool peer_is_shared = false;     // ... but only with what others of its node receive
};

// What others of the node sent and received over the same NICs meanwhile.
struct OthersSample {
  std::uint64_t out_bytes = 0, in_bytes = 0;
};

class RateMeter {
 public:
  // Sample about this often while there is traffic.
  static constexpr std::uint64_t kSampleNs = 10'000'000;

  explicit RateMeter(int peers);
  // Marks the peers behind a limited uplink.
  void set_far(std::vector<bool> is_far) { is_far_ = std::move(is_far); }
  // What the own link was measured to take; 0: not known.
  void set_own_rate(std::uint64_t out_kbps, std::uint64_t in_kbps) {
    out_.own_kbps = out_kbps;
    in_.own_kbps = in_kbps;
  }
  void add(std::uint64_t duration_ns, std::span<const LinkSample> links, OthersSample others = {});
  // The time between the last sample and the next one does not count: nothing was sampled.
  void pause();
  // Our data waits because of this peer's receiving, as of the last sample.
  bool blocked_by(int peer) const { return blocked_by_[peer]; }
  // We receive as much as our link takes, as of the last samples.
  bool is_full() const { return in_.is_full(); }
  // ... or as of a moment ago, but only with what others of the node receive.
  bool is_shared() const { return in_.is_shared(); }
  // What was seen since the last call.
  PassiveReport take();

 private:
  // A time of one kind, long enough to know a rate from it.
  struct Window {
    std::int64_t kbps;  // with others' bytes
    std::int64_t ours_kbps;
    std::uint64_t ns;
    bool is_limit;
  };
  struct Direction {
    std::uint64_t ours = 0, others = 0, ns = 0;  // bytes and time of the window in the making
    bool is_limit = false;
    std::uint64_t own_kbps = 0;   // 0: not known
    double recent_kbps = 0;       // over the last few samples
    std::uint64_t shared_ns = 0;  // counts as full with others' bytes for so long
    std::vector<Window> windows;
    std::size_t next = 0;  // oldest, once all kMostWindows are in use

    void add(bool limit, std::uint64_t more_ours, std::uint64_t more_others, std::uint64_t more_ns);
    void close();
    void recent(std::uint64_t more_ours, std::uint64_t more_others, std::uint64_t more_ns);
    bool is_full() const;
    bool is_shared() const { return shared_ns > 0; }
    PassiveRate take();
  };

  Direction out_, in_, far_;
  std::vector<bool> is_far_;
  std::vector<std::uint64_t> used_ns_;  // per peer: counts as in use for so long
  std::vector<bool> blocked_by_;
  std::uint64_t active_ns_ = 0;
};

}  // namespace riffle::probe
