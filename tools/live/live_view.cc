#include "tools/live/live_view.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace riffle::tools {
namespace {

double newest_sample_t(const CommRecords& comm) {
  double t = 0;
  for (const auto& [rank, node] : comm.nodes) {
    if (!node.samples.empty()) t = std::max(t, node.samples.back().t);
  }
  return t;
}

// A node that writes no samples any more, while others do: what it did last is not what it does
// now. Large communicators sample less often than once a window.
bool has_stopped(const NodeRecord& node, double newest_t, double window_s) {
  const std::size_t n = node.samples.size();
  const double last_t = node.samples[n - 1].t;
  const double interval_s = n > 1 ? last_t - node.samples[n - 2].t : 0;
  return newest_t - last_t > window_s + 2 * interval_s;
}

void cut_down(NodeRecord& node, double window_s) {
  if (node.samples.size() < 2) return;
  const double begin_t = node.samples.back().t - window_s;
  const auto after = std::partition_point(node.samples.begin(), node.samples.end(),
                                          [&](const Sample& s) { return s.t <= begin_t; });
  const Sample& base = after == node.samples.begin() ? node.samples.front() : *(after - 1);
  node.connected_t = base.t;
  node.samples = {since(base, node.samples.back())};
}

void add_traffic(const Explanation& now, std::vector<LiveNode>& nodes) {
  for (const Resource& r : now.resources) {
    const bool sends = r.kind == ResourceKind::kSending;
    if (!sends && r.kind != ResourceKind::kReceiving) continue;
    LiveNode& node = nodes[static_cast<std::size_t>(r.index)];
    LiveSide& side = sends ? node.out : node.in;
    side.mbps = r.carried_mbps;
    side.share = r.share;
  }
}

void add_rates(const Fabric& fabric, std::vector<LiveNode>& nodes) {
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    nodes[n].out.rate_mbps = static_cast<double>(fabric.nodes[n].out_kbps) / 1000;
    nodes[n].in.rate_mbps = static_cast<double>(fabric.nodes[n].in_kbps) / 1000;
  }
}

void add_waits(const CommRecords& recent, std::vector<LiveNode>& nodes) {
  double all = 0;
  for (const auto& [rank, node] : recent.nodes) {
    if (node.samples.empty()) continue;
    for (const auto& [peer, link] : node.samples.back().links) {
      nodes[static_cast<std::size_t>(peer)].waited_for += static_cast<double>(link.last);
      all += static_cast<double>(link.last);
    }
  }
  if (all == 0) return;
  for (LiveNode& node : nodes) node.waited_for /= all;
}

LiveView view_of(const std::string& key, const CommRecords& comm, double window_s) {
  LiveView view;
  view.comm = key;
  view.slurm_job_id = comm.slurm_job_id;
  view.newest_t = newest_sample_t(comm);
  const CommRecords recent = last_seconds(comm, window_s);
  JobRecord alone;
  alone.comms[key] = recent;
  view.now = std::move(explain(alone).front());
  for (const std::string& host : comm.hosts) view.nodes.push_back({.name = host});
  for (const auto& [rank, node] : comm.nodes) {
    if (node.samples.empty()) continue;
    view.nodes[static_cast<std::size_t>(rank)].sample_t = node.samples.back().t;
  }
  for (const Loss& loss : view.now.losses) {
    for (const auto& [rank, why] : loss.event.lost) {
      view.nodes[static_cast<std::size_t>(rank)].lost = why;
    }
  }
  for (const auto& [rank, node] : recent.nodes) {
    if (node.samples.empty()) continue;
    view.begin_t = node.connected_t > 0 ? node.connected_t : node.samples.front().t;
    break;
  }
  add_traffic(view.now, view.nodes);
  add_waits(recent, view.nodes);
  const std::vector<PlanEvent>& plans = plans_of(comm);
  if (plans.empty()) return view;
  view.plan = plans.back();
  for (const PlanEvent& plan : plans) {
    if (plan.fabric && !plan.is_nominal) add_rates(*plan.fabric, view.nodes);
  }
  return view;
}

}  // namespace

CommRecords last_seconds(CommRecords comm, double window_s) {
  const double newest_t = newest_sample_t(comm);
  for (auto& [rank, node] : comm.nodes) {
    if (node.samples.empty()) continue;
    if (has_stopped(node, newest_t, window_s)) {
      node.samples.clear();
    } else {
      cut_down(node, window_s);
    }
  }
  return comm;
}

std::vector<LiveView> view_live(const JobRecord& job, double window_s) {
  std::vector<LiveView> views;
  double newest_t = 0;
  for (const auto& [key, comm] : job.comms) {
    views.push_back(view_of(key, comm, window_s));
    newest_t = std::max(newest_t, views.back().newest_t);
  }
  const auto is_over = [&](const LiveView& v) { return v.newest_t < newest_t - window_s; };
  std::stable_sort(views.begin(), views.end(), [&](const LiveView& a, const LiveView& b) {
    if (is_over(a) != is_over(b)) return is_over(b);
    return a.now.active_s > b.now.active_s;
  });
  return views;
}

}  // namespace riffle::tools
