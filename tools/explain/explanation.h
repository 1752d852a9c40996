// Explanation: what limited a job's all-reduces, found from its record.
//
// The load of every link is what the nodes' records say went over it. Where the plan's fabric is
// known, a link's share of time is load / rate over the time in which collectives ran: the one with
// the largest share is the limit. Where the rates say that nothing is near its limit, the kernel's
// own account decides: a link whose senders had data waiting nearly all the time, unlike the
// others', is slow whatever the fabric says. What the plan was predicted to take tells whether the
// model of the network is right.
//
// Looked at is the time since the last plan change, if enough was recorded since; else everything.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/explain/job_record.h"
#include "tools/terminal/terminal.h"

namespace riffle::tools {

inline constexpr int kMaxDrawnNodes = 128;

// In the order in which one of several that are in use alike is named: a full uplink makes other
// racks' downlinks full too, a slow sender its receivers.
enum class ResourceKind { kUplink, kDownlink, kSending, kReceiving };

struct Resource {
  ResourceKind kind = ResourceKind::kSending;
  int index = 0;            // of the rack or node
  std::string name;         // "sending of node node3", "uplink of rack left"
  double rate_mbps = 0;     // 0: not known
  double carried_mbps = 0;  // while collectives ran
  double share = 0;         // of that time, by the rate; without one by the kernel's account
};

// Who is waited for: of the groups of `node`, the share whose last contribution was `by`'s.
struct Wait {
  int node = 0;
  int by = 0;
  double share = 0;
};

struct TimePoint {
  double t = 0;       // s since connect
  double mbps = 0;    // bytes all-reduced per second of collective time
  double active = 0;  // share of time in collectives
};

struct ModeChange {
  int communicator = 0;  // of those with these hosts, by key, from 0
  ModeEvent event;       // its t: s since connect of the communicator with the most collective time
};

struct Loss {
  int communicator = 0;   // as in ModeChange
  LossEvent event;        // of the lowest node that recorded it; its t as in ModeChange
  double slowest_ms = 0;  // recovery, of all nodes that recorded it
};

struct Explanation {
  std::string headline;                       // one sentence: what limits
  std::string slurm_job_id, version;          // empty: the record does not say
  double connected_t = 0, newest_t = 0;       // Unix time; the newest sample's, 0: there is none
  std::vector<std::string> hosts;             // by rank
  int communicators = 0;                      // with these hosts
  int recorded_nodes = 0;                     // of them, how many gave a record
  std::vector<Resource> resources;            // the largest share first
  std::vector<Wait> waits;                    // one per recorded node with groups, by node
  std::map<std::uint64_t, SizeTotals> sizes;  // as the lowest recorded rank saw them
  double wall_s = 0, active_s = 0;
  std::uint64_t bytes = 0;        // all-reduced
  std::optional<double> bound_s;  // least time for these bytes
  std::optional<double> x_bound;  // time in collectives over the bound
  // ... over what the plan was predicted to take, as far as that can be compared (prediction.h).
  std::optional<double> x_predicted;
  bool since_last_plan = false;  // resources, waits, bound and prediction cover this window only
  std::vector<PlanEvent> plans;
  // Of every communicator, as its lowest node that has any recorded them (node 0); by time.
  std::vector<ModeChange> modes;
  std::vector<Loss> losses;  // of every communicator, by time
  // Of all communicators and recorded nodes together; none: no such mode was wanted.
  std::optional<RelaxedUse> relaxed;
  std::vector<TimePoint> timeline;
  // [from][to] while collectives ran, and the share of that time in which the sender's kernel had
  // data waiting (-1: not recorded). Empty for more than kMaxDrawnNodes nodes.
  std::vector<std::vector<double>> link_mbps, link_busy;
  std::vector<std::string> failures, notes;
};

// One per set of hosts, the one with the most collective time first. Never empty for a record with
// a connected communicator.
std::vector<Explanation> explain(const JobRecord& job);

// "job 4711, riffle 0.2.0, 2026-11-26 10:15:00 to 10:25:30 UTC"; empty: the record says none of it.
std::string origin_text(const Explanation& e);
// Of the calls that an explanation counts.
inline constexpr char kCallsAreSlices[] =
    "a call is a slice: NCCL cuts an all-reduce of the job into several";
// "node3 (killed), node5 (silent)"
std::string lost_text(const Explanation& e, const Loss& loss);
std::string to_text(const Explanation& e, const Colours& colours);
std::string to_json(const std::vector<Explanation>& all);
std::string to_html(const std::vector<Explanation>& all);

}  // namespace riffle::tools
