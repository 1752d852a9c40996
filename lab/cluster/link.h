// The limit of one direction of one link, as commands for tc (iproute2).
//
// tbf, htb: a token bucket before a first-in-first-out queue. After a pause a link may send
// burst_bytes ahead of its rate; by default 72 kB (0.4 % of 16 MiB), since with less the timers of
// a busy machine lose rate. The queue holds queue_ms at the link's rate beside a burst (tc-tbf's
// "latency"), or queue_bytes; by default 40 ms and at least 1.5 MB (like a switch's buffer), so
// that seven senders into one link lose next to nothing.
//
// policer: a token bucket without a queue, which drops what it has no tokens for. Kernels without
// tc's police action must run it, too, so it is a tbf that keeps one packet at most.
//
// Packets are segmentation-offload packets of at most gso_max_bytes, lengths are counted as on the
// wire: 1514 bytes per 1448 of payload. By default they have 16 KiB: a first-in-first-out queue of
// 64 KiB ones starves some of seven flows, which a switch that interleaves 1500-byte packets does
// not. No queue is shorter than one such packet, or none would pass.
#pragma once

#include <string>

#include "lab/cluster/profile.h"

namespace riffle::cluster {

// Largest packet of nodes with a rate, where a profile says nothing.
inline constexpr std::int64_t kPacketBytes = 16'384;

// rate_kbps 0: no limit, no command.
std::string limit(const Shaping& shaping, const std::string& device, std::int64_t rate_kbps);

// As limit(), by htb, but `guaranteed_kbps` of it belong to the packets that `match` (tc-u32)
// picks.
std::string shared_limit(const Shaping& shaping, const std::string& device, std::int64_t rate_kbps,
                         std::int64_t guaranteed_kbps, const std::string& match);

// What `device` receives passes `through`, an ifb device, where it can be limited: beyond the
// sender, whose TCP would notice a drop in its own queue at once.
std::string redirect_received(const std::string& device, const std::string& through);

}  // namespace riffle::cluster
