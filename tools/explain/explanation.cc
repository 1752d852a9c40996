#include "tools/explain/explanation.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "tools/explain/limit.h"
#include "tools/explain/prediction.h"
#include "topology/base/printed.h"
#include "topology/plan/planner.h"

namespace riffle::tools {
namespace {

constexpr double kLeastWindow = 0.1;  // of all bytes: less says nothing about the last plan

// When the plan in force began; 0 if it was the first.
double last_change(const CommRecords& comm) {
  double t = 0;
  for (const auto& [rank, node] : comm.nodes) {
    if (node.plans.size() > 1) t = std::max(t, node.plans.back().t);
  }
  return t;
}

// Every node's totals in the window that begins at `t`.
std::map<int, Sample> window(const CommRecords& comm, double t) {
  std::map<int, Sample> totals;
  for (const auto& [rank, node] : comm.nodes) {
    if (node.samples.empty()) continue;
    const auto after = std::partition_point(node.samples.begin(), node.samples.end(),
                                            [&](const Sample& s) { return s.t <= t; });
    totals[rank] = after == node.samples.begin() ? node.samples.back()
                                                 : since(*(after - 1), node.samples.back());
  }
  return totals;
}

double begin_of(const CommRecords& comm) {
  double begin = std::numeric_limits<double>::infinity();
  for (const auto& [rank, node] : comm.nodes) {
    if (node.connected_t > 0) begin = std::min(begin, node.connected_t);
    if (!node.samples.empty()) begin = std::min(begin, node.samples.front().t);
  }
  return begin;
}

double end_of(const CommRecords& comm) {
  double end = 0;
  for (const auto& [rank, node] : comm.nodes) {
    if (!node.samples.empty()) end = std::max(end, node.samples.back().t);
  }
  return end;
}

class Analysis {
 public:
  explicit Analysis(const std::vector<const CommRecords*>& comms) {
    e_.hosts = comms.front()->hosts;
    e_.communicators = static_cast<int>(comms.size());
    for (const CommRecords* comm : comms) add(*comm);
  }

  Explanation take() {
    traffic_.active_us = active_us();
    take_main_view();
    std::stable_sort(
        e_.modes.begin(), e_.modes.end(),
        [](const ModeChange& a, const ModeChange& b) { return a.event.t < b.event.t; });
    std::stable_sort(e_.losses.begin(), e_.losses.end(),
                     [](const Loss& a, const Loss& b) { return a.event.t < b.event.t; });
    Limits limits = find_limits(e_.hosts, fabric_, traffic_);
    e_.resources = std::move(limits.resources);
    e_.headline = std::move(limits.headline);
    if (e_.bound_s && traffic_.active_us > 0) {
      e_.x_bound = static_cast<double>(traffic_.active_us) / 1e6 / *e_.bound_s;
      e_.headline += printed("; %.2f x the bound", *e_.x_bound);
    }
    if (e_.x_predicted && *e_.x_predicted >= kModelError) {
      e_.headline += printed(
          "; model error: all-reduces take %.2f x what the plan was predicted to take, so the "
          "network is another one than it was made for, or nodes lack processor",
          *e_.x_predicted);
    }
    draw_links();
    return std::move(e_);
  }

 private:
  void add(const CommRecords& comm) {
    add_origin(comm);
    const double change = last_change(comm);
    std::map<int, Sample> totals = window(comm, change);
    const std::map<int, Sample> whole = window(comm, 0);
    e_.recorded_nodes = std::max(e_.recorded_nodes, static_cast<int>(whole.size()));
    for (const auto& [rank, node] : comm.nodes) {
      for (const std::string& why : node.failures) {
        e_.failures.push_back(e_.hosts[static_cast<std::size_t>(rank)] + ": " + why);
      }
    }
    add_losses(comm);
    add_modes(comm);
    if (whole.empty()) return;
    const auto all = static_cast<double>(bytes_of(whole.begin()->second));
    const auto recent = static_cast<double>(bytes_of(totals.begin()->second));
    const bool is_recent = change > 0 && recent >= kLeastWindow * all;
    if (!is_recent) totals = whole;

    std::uint64_t active_us = 0;
    for (const auto& [rank, sample] : totals) active_us = std::max(active_us, sample.active_us);
    for (const auto& [rank, sample] : totals) add_links(rank, sample, totals);
    spans_.push_back({is_recent ? change : begin_of(comm), end_of(comm), active_us});
    window_bytes_ += bytes_of(totals.begin()->second);
    for (const auto& [rank, sample] : totals) has_others_ |= sample.others > 0;
    if (main_ == nullptr || active_us > main_active_us_) {
      main_ = &comm;
      main_active_us_ = active_us;
      main_totals_ = totals;
      e_.since_last_plan = is_recent;
      main_since_t_ = is_recent ? change : 0;
      has_main_one_plan_ = is_recent || change == 0;
    }
    add_whole(whole);
  }

  // Communicators side by side share the time, those of a job that began anew follow each other.
  std::uint64_t active_us() {
    std::ranges::sort(spans_, {}, &Span::begin);
    std::uint64_t sum = 0, most = 0;
    double end = 0;
    for (const Span& span : spans_) {
      if (span.begin >= end) sum += std::exchange(most, 0);
      most = std::max(most, span.active_us);
      end = std::max(end, span.end);
    }
    return sum + most;
  }

  // Which job it was, and when.
  void add_origin(const CommRecords& comm) {
    if (!comm.slurm_job_id.empty()) e_.slurm_job_id = comm.slurm_job_id;
    if (!comm.version.empty()) e_.version = comm.version;
    for (const auto& [rank, node] : comm.nodes) {
      const double t = node.connected_t;
      if (t > 0 && (e_.connected_t == 0 || t < e_.connected_t)) e_.connected_t = t;
      if (!node.samples.empty()) e_.newest_t = std::max(e_.newest_t, node.samples.back().t);
    }
  }

  void add_links(int rank, const Sample& sample, const std::map<int, Sample>& totals) {
    for (const auto& [peer, link] : sample.links) {
      Traffic::Link& to = traffic_.links[{rank, peer}];
      to.busy_us = std::max(to.busy_us, 0.0) + static_cast<double>(link.busy_us);
      to.bytes += link.out;
      if (!totals.contains(peer)) traffic_.links[{peer, rank}].bytes += link.in;
    }
  }

  // A job's modes may run on one of its communicators and the most time be spent on another.
  void add_modes(const CommRecords& comm) {
    const int number = communicator_++;
    const auto has_modes = [](const auto& node) { return !node.second.modes.empty(); };
    const auto teller = std::find_if(comm.nodes.begin(), comm.nodes.end(), has_modes);
    if (teller != comm.nodes.end()) {
      for (const ModeEvent& event : teller->second.modes) e_.modes.push_back({number, event});
    }
    for (const auto& [rank, node] : comm.nodes) {
      if (node.samples.empty() || !node.samples.back().relaxed) continue;
      if (!e_.relaxed) e_.relaxed.emplace();
      e_.relaxed->add(*node.samples.back().relaxed);
    }
  }

  // Survivors tell the same, but a cascade may look different from each of them: the lowest node
  // that lived to tell the most speaks for all.
  void add_losses(const CommRecords& comm) {
    const NodeRecord* teller = nullptr;
    for (const auto& [rank, node] : comm.nodes) {
      if (teller == nullptr || node.losses.size() > teller->losses.size()) teller = &node;
    }
    if (teller == nullptr) return;
    for (const LossEvent& event : teller->losses) {
      Loss loss{communicator_, event, event.recovery_ms};
      for (const auto& [rank, node] : comm.nodes) {
        for (const LossEvent& other : node.losses) {
          if (other.left == event.left) {
            loss.slowest_ms = std::max(loss.slowest_ms, other.recovery_ms);
          }
        }
      }
      e_.losses.push_back(std::move(loss));
    }
  }

  void add_whole(const std::map<int, Sample>& whole) {
    const Sample& first = whole.begin()->second;
    e_.bytes += bytes_of(first);
    for (const auto& [up_to, totals] : first.sizes) {
      SizeTotals& sum = e_.sizes[up_to];
      sum.count += totals.count;
      sum.bytes += totals.bytes;
      sum.total_us += totals.total_us;
      sum.max_us = std::max(sum.max_us, totals.max_us);
      for (const auto& [us, n] : totals.times) sum.times[us] += n;
    }
  }

  // Plans, times and waits come from the communicator with the most collective time.
  void take_main_view() {
    if (main_ == nullptr) return;
    e_.plans = plans_of(*main_);
    for (const PlanEvent& plan : e_.plans) {
      if (plan.fabric && !plan.is_nominal) fabric_ = plan.fabric;
    }
    if (has_main_one_plan_ && !e_.plans.empty()) {
      e_.x_predicted = over_prediction(*main_, main_totals_, main_since_t_, e_.plans.back());
    }
    for (const auto& [rank, sample] : main_totals_) take_waits(rank, sample);
    for (const auto& [rank, node] : main_->nodes) {
      if (node.samples.empty()) continue;
      take_times(node);
      break;
    }
    if (fabric_ && window_bytes_ > 0 && !has_others_) {
      e_.bound_s = kWirePerPayload * bound_us(*fabric_, window_bytes_) / 1e6;
    }
  }

  void take_waits(int rank, const Sample& sample) {
    std::uint64_t all = sample.last_self, most = 0;
    int by = -1;
    for (const auto& [peer, link] : sample.links) {
      all += link.last;
      if (link.last > most) {
        most = link.last;
        by = peer;
      }
    }
    if (by < 0) return;
    e_.waits.push_back({rank, by, static_cast<double>(most) / static_cast<double>(all)});
  }

  void take_times(const NodeRecord& node) {
    const double begin = node.connected_t > 0 ? node.connected_t : node.samples.front().t;
    const Sample* before = nullptr;
    double before_t = begin;
    for (const Sample& sample : node.samples) {
      const Sample step = before == nullptr ? sample : since(*before, sample);
      const double seconds = sample.t - before_t;
      if (seconds > 0) {
        const auto active_us = static_cast<double>(step.active_us);
        e_.timeline.push_back(
            {sample.t - begin,
             active_us > 0 ? 8 * static_cast<double>(bytes_of(step)) / active_us : 0,
             std::min(1.0, active_us / 1e6 / seconds)});
      }
      before = &sample;
      before_t = sample.t;
    }
    e_.wall_s = node.samples.back().t - begin;
    e_.active_s = static_cast<double>(node.samples.back().active_us) / 1e6;
    for (PlanEvent& plan : e_.plans) plan.t -= begin;
    for (ModeChange& mode : e_.modes) mode.event.t -= begin;
    for (Loss& loss : e_.losses) loss.event.t -= begin;
  }

  void draw_links() {
    const std::size_t n = e_.hosts.size();
    if (n > kMaxDrawnNodes || traffic_.active_us == 0) return;
    e_.link_mbps.assign(n, std::vector<double>(n, 0));
    e_.link_busy.assign(n, std::vector<double>(n, -1));
    const auto active = static_cast<double>(traffic_.active_us);
    for (const auto& [ends, link] : traffic_.links) {
      const auto from = static_cast<std::size_t>(ends.first);
      const auto to = static_cast<std::size_t>(ends.second);
      e_.link_mbps[from][to] = 8 * static_cast<double>(link.bytes) / active;
      if (link.busy_us >= 0) e_.link_busy[from][to] = std::min(1.0, link.busy_us / active);
    }
  }

  Explanation e_;
  Traffic traffic_;
  std::optional<Fabric> fabric_;
  const CommRecords* main_ = nullptr;
  std::uint64_t main_active_us_ = 0;
  std::map<int, Sample> main_totals_;
  double main_since_t_ = 0;         // they are of this time on
  bool has_main_one_plan_ = false;  // in force all the while
  int communicator_ = 0;            // looked at so far
  struct Span {                     // of one communicator
    double begin = 0, end = 0;
    std::uint64_t active_us = 0;
  };
  std::vector<Span> spans_;
  std::uint64_t window_bytes_ = 0;
  bool has_others_ = false;
};

}  // namespace

std::vector<Explanation> explain(const JobRecord& job) {
  std::map<std::vector<std::string>, std::vector<const CommRecords*>> by_hosts;
  for (const auto& [key, comm] : job.comms) by_hosts[comm.hosts].push_back(&comm);
  std::vector<Explanation> all;
  for (const auto& [hosts, comms] : by_hosts) all.push_back(Analysis(comms).take());
  std::stable_sort(all.begin(), all.end(), [](const Explanation& a, const Explanation& b) {
    return a.active_s > b.active_s;
  });
  if (!all.empty()) {
    all.front().notes = job.notes;
    for (const NoConnect& f : job.failures) all.front().failures.push_back(f.why);
  }
  return all;
}

}  // namespace riffle::tools
