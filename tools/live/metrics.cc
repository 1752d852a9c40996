#include "tools/live/metrics.h"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "plugin/telemetry/comm_record.h"
#include "tools/live/exposition.h"
#include "tools/live/live_view.h"

namespace riffle::tools {
namespace {

using Labels = Exposition::Labels;

constexpr double kBytesPerMbit = 1e6 / 8;
constexpr double kStillRunsS = 60;

Labels with(Labels labels, const std::string& name, const std::string& value) {
  labels.emplace_back(name, value);
  return labels;
}

// Outside of Slurm as Inspector says it.
std::string job_label(const std::string& slurm_job_id) {
  return slurm_job_id.empty() ? "unknown" : slurm_job_id;
}

// What a node did since connect, by its own record or, where it gave none, by the others'.
struct NodeTotals {
  std::uint64_t out = 0, in = 0;
  std::uint64_t out_busy_us = 0, in_busy_us = 0;  // of all its links
  std::uint64_t out_links = 0, in_links = 0;      // that this is known of
  std::uint64_t retransmits = 0, waited_for = 0;
};

std::vector<NodeTotals> totals_of(const CommRecords& comm) {
  std::vector<NodeTotals> all(comm.hosts.size());
  const auto has_samples = [&](int rank) {
    const auto node = comm.nodes.find(rank);
    return node != comm.nodes.end() && !node->second.samples.empty();
  };
  for (const auto& [rank, node] : comm.nodes) {
    if (node.samples.empty()) continue;
    NodeTotals& own = all[static_cast<std::size_t>(rank)];
    for (const auto& [peer_rank, link] : node.samples.back().links) {
      NodeTotals& peer = all[static_cast<std::size_t>(peer_rank)];
      own.out += link.out;
      own.in += link.in;
      own.out_busy_us += link.busy_us;
      ++own.out_links;
      own.retransmits += link.retransmits;
      peer.in_busy_us += link.busy_us;
      ++peer.in_links;
      peer.waited_for += link.last;
      if (has_samples(peer_rank)) continue;
      peer.out += link.in;
      peer.in += link.out;
    }
  }
  return all;
}

// Metrics of one communicator.
class CommMetrics {
 public:
  CommMetrics(const LiveView& view, const CommRecords& comm, bool still_runs, Exposition* out)
      : view_(view),
        comm_(comm),
        still_runs_(still_runs),
        out_(*out),
        labels_({{"slurm_job_id", job_label(comm.slurm_job_id)},
                 {"comm_id", view.comm},
                 {"n_nodes", std::to_string(comm.size())}}) {}

  void add() {
    add_comm();
    add_plan();
    const std::vector<NodeTotals> totals = totals_of(comm_);
    for (int rank = 0; rank < comm_.size(); ++rank) {
      add_node(rank, totals[static_cast<std::size_t>(rank)]);
    }
  }

 private:
  void add_comm() {
    std::set<int> lost;
    for (const Loss& loss : view_.now.losses) {
      for (const auto& [rank, why] : loss.event.lost) lost.insert(rank);
    }
    out_.gauge("riffle_communicator_lost_nodes", "Nodes that were lost while the others went on.",
               labels_, static_cast<double>(lost.size()));
    out_.gauge("riffle_communicator_broken",
               "1 where the communicator broke: its all-reduces ended with an error.", labels_,
               view_.now.failures.empty() ? 0 : 1);
    if (still_runs_ && view_.now.x_bound) {
      out_.gauge("riffle_communicator_bound_ratio",
                 "Time in collectives over the least that any exact algorithm could take, lately.",
                 labels_, *view_.now.x_bound);
    }
    if (still_runs_ && view_.now.x_predicted) {
      out_.gauge("riffle_communicator_model_ratio",
                 "Time in collectives over what the plan was predicted to take, lately.", labels_,
                 *view_.now.x_predicted);
    }
  }

  void add_plan() {
    if (!view_.plan) return;
    const PlanEvent& plan = *view_.plan;
    out_.gauge("riffle_plan_info", "1; the plan in force and why.",
               with(with(with(with(labels_, "plan", plan.name), "digest", plan.digest), "cause",
                         plan.cause),
                    "reason", plan.reason),
               1);
    out_.gauge("riffle_plan_start_timestamp_seconds", "When the plan in force began, Unix time.",
               labels_, plan.t);
    std::map<std::string, std::uint64_t> changes = {{"rates", 0}, {"return", 0}, {"trial", 0}};
    for (const PlanEvent& event : plans_of(comm_)) {
      const auto counter = changes.find(event.trigger);
      if (counter != changes.end()) ++counter->second;
    }
    for (const auto& [trigger, count] : changes) {
      out_.counter("riffle_plan_changes_total",
                   "Changes of the plan: as rates changed, as a trial where the model of the "
                   "network is in doubt, or back to the plan before.",
                   with(labels_, "trigger", trigger), count);
    }
  }

  void add_node(int rank, const NodeTotals& totals) {
    const LiveNode& node = view_.nodes[static_cast<std::size_t>(rank)];
    const Labels labels = with(with(labels_, "node", node.name), "comm_rank", std::to_string(rank));
    add_side(with(labels, "direction", "out"), totals.out, totals.out_busy_us, totals.out_links,
             node.out.rate_mbps);
    add_side(with(labels, "direction", "in"), totals.in, totals.in_busy_us, totals.in_links,
             node.in.rate_mbps);
    out_.gauge("riffle_node_lost", "1 where the other nodes went on without this one.", labels,
               node.lost.empty() ? 0 : 1);
    out_.counter("riffle_node_waited_for_total",
                 "Groups of other nodes whose last contribution was this node's.", labels,
                 totals.waited_for);
    const auto own = comm_.nodes.find(rank);
    if (own == comm_.nodes.end() || own->second.samples.empty()) return;
    const Sample& sample = own->second.samples.back();
    out_.counter("riffle_node_retransmitted_segments_total",
                 "TCP segments that this node sent again.", labels, totals.retransmits);
    out_.counter_s("riffle_node_collective_seconds_total",
                   "Time in which collectives ran on this node.", labels, sample.active_us);
    out_.gauge("riffle_node_last_sample_timestamp_seconds",
               "When this node last wrote into its record, Unix time.", labels, sample.t);
    add_calls(labels, sample);
  }

  void add_side(const Labels& labels, std::uint64_t bytes, std::uint64_t busy_us,
                std::uint64_t links, double rate_mbps) {
    out_.counter("riffle_node_traffic_bytes_total",
                 "Bytes of frames that this node sent (out) or received (in).", labels, bytes);
    out_.counter_s("riffle_node_backlog_seconds_total",
                   "Time in which senders' kernels had data waiting for this node's links, the "
                   "mean of its links.",
                   labels, links > 0 ? busy_us / links : 0);
    if (rate_mbps == 0) return;
    out_.gauge("riffle_node_rate_bytes_per_second",
               "What the plan in force takes this node to be able to send (out) or receive (in).",
               labels, rate_mbps * kBytesPerMbit);
  }

  void add_calls(const Labels& labels, const Sample& sample) {
    for (const auto& [up_to, totals] : sample.sizes) {
      const Labels size = with(with(labels, "collective", "AllReduce"), "message_size_bytes",
                               std::to_string(up_to));
      out_.counter("riffle_node_calls_total",
                   "Calls by size: above half of message_size_bytes, and at most it.", size,
                   totals.count);
      out_.counter("riffle_node_call_bytes_total", "Bytes of their buffers.", size, totals.bytes);
      out_.counter_s("riffle_node_call_seconds_total", "Time from their posting to their end.",
                     size, totals.total_us);
    }
  }

  const LiveView& view_;
  const CommRecords& comm_;
  const bool still_runs_;
  Exposition& out_;
  const Labels labels_;
};

// Communicators that never connected: all nodes tell the same.
void add_failures(const std::vector<NoConnect>& failures, Exposition* out) {
  std::set<std::tuple<std::string, std::string, std::string>> seen;
  for (const NoConnect& f : failures) {
    if (!seen.emplace(f.slurm_job_id, f.comm, f.why).second) continue;
    const std::string fallback = kFallback;
    const bool falls_back = f.why.starts_with(fallback);
    const Labels labels = {{"slurm_job_id", job_label(f.slurm_job_id)},
                           {"comm_id", f.comm},
                           {"reason", falls_back ? f.why.substr(fallback.size()) : f.why}};
    if (falls_back) {
      out->gauge("riffle_communicator_fallback",
                 "1; a communicator whose all-reduces stay with NCCL, and why.", labels, 1);
    } else {
      out->gauge("riffle_communicator_connect_failed",
                 "1; a communicator that did not connect, and why.", labels, 1);
    }
  }
}

}  // namespace

std::string metrics_text(const RecordFollower& record, double window_s, double now_t) {
  Exposition out;
  out.gauge("riffle_record_files", "Files of running jobs that are read.", {},
            static_cast<double>(record.files()));
  out.counter("riffle_record_damaged_lines_total", "Lines that are not of a record.", {},
              record.bad_lines());
  const JobRecord job = record.job();
  for (const LiveView& view : view_live(job, window_s)) {
    const bool still_runs = view.newest_t >= now_t - window_s - kStillRunsS;
    CommMetrics(view, job.comms.at(view.comm), still_runs, &out).add();
  }
  add_failures(job.failures, &out);
  return out.text();
}

}  // namespace riffle::tools
