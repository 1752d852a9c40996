#include "plugin/transport/sim/fluid.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace riffle::sim {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();

double bytes_per_ns(std::int64_t kbps) { return static_cast<double>(kbps) * 1.25e-7; }
// "No limit" for a rack's link: more than any sum of nodes.
double rack_bytes_per_ns(std::int64_t kbps) { return kbps == 0 ? 1e9 : bytes_per_ns(kbps); }

}  // namespace

Fluid::Fluid(const Fabric& fabric, std::uint64_t tick_ns)
    : nodes_(fabric.size()), tick_ns_(std::max<std::uint64_t>(tick_ns, 1)) {
  for (const NodeLink& node : fabric.nodes) {
    rack_of_.push_back(node.rack);
    share_.add_resource(bytes_per_ns(node.out_kbps));
    share_.add_resource(bytes_per_ns(node.in_kbps));
  }
  for (const RackLink& rack : fabric.racks) {
    share_.add_resource(rack_bytes_per_ns(rack.up_kbps));
    share_.add_resource(rack_bytes_per_ns(rack.down_kbps));
  }
  bytes_.assign(2 * (fabric.nodes.size() + fabric.racks.size()), 0);
}

int Fluid::add_flow(int from, int to) {
  std::vector<int> resources = {out(from), in(to)};
  if (rack_of_[from] != rack_of_[to]) {
    resources.push_back(up(rack_of_[from]));
    resources.push_back(down(rack_of_[to]));
  }
  pipes_.emplace_back();
  return share_.add_flow(resources);
}

std::uint64_t Fluid::on_tick(double time_ns) const {
  if (time_ns > 1e18) return kNever;
  const auto whole = static_cast<std::uint64_t>(std::ceil(time_ns));
  return (whole + tick_ns_ - 1) / tick_ns_ * tick_ns_;
}

void Fluid::changed(std::uint64_t now_ns) {
  share_at_ns_ = std::min(share_at_ns_, on_tick(static_cast<double>(now_ns)));
}

void Fluid::begin(int flow, double bytes, std::uint64_t now_ns) {
  share_.start(flow);
  pipes_[flow] = {.bytes = bytes,
                  .left = bytes,
                  .since_ns = static_cast<double>(now_ns),
                  .rate = 0,
                  .finish_ns = kEndless};
  changed(now_ns);
}

void Fluid::set_weight(int flow, int weight, std::uint64_t now_ns) {
  share_.set_weight(flow, weight);
  if (share_.is_active(flow)) changed(now_ns);
}

void Fluid::drop(int flow, std::uint64_t now_ns) {
  if (!share_.is_active(flow)) return;
  share_.stop(flow);
  changed(now_ns);
}

double Fluid::passed(int flow, std::uint64_t now_ns) const {
  if (!share_.is_active(flow)) return 0;
  const Pipe& pipe = pipes_[flow];
  const double since = static_cast<double>(now_ns) - pipe.since_ns;
  return std::clamp(pipe.bytes - pipe.left + since * pipe.rate, 0.0, pipe.bytes);
}

const std::vector<int>& Fluid::complete(std::uint64_t now_ns) {
  completed_.clear();
  const auto now = static_cast<double>(now_ns);
  double next = kEndless;
  for (const int flow : share_.active()) {
    const Pipe& pipe = pipes_[flow];
    if (pipe.finish_ns <= now) {
      completed_.push_back(flow);
      count(flow, pipe.bytes);
    } else {
      next = std::min(next, pipe.finish_ns);
    }
  }
  finish_at_ns_ = on_tick(next);
  return completed_;
}

void Fluid::set_peer_weights(std::uint64_t now_ns) {
  share_at_ns_ = kNever;
  share_.solve();
  const auto now = static_cast<double>(now_ns);
  double next = kEndless;
  for (const int flow : share_.active()) {
    Pipe& pipe = pipes_[flow];
    const double rate = share_.rate(flow);
    if (rate != pipe.rate) {
      pipe.left = std::max(0.0, pipe.left - (now - pipe.since_ns) * pipe.rate);
      pipe.since_ns = now;
      pipe.rate = rate;
      pipe.finish_ns = rate > 0 ? now + pipe.left / rate : kEndless;
    }
    next = std::min(next, pipe.finish_ns);
  }
  finish_at_ns_ = on_tick(next);
}

bool Fluid::more(int flow, double bytes, std::uint64_t now_ns) {
  Pipe& pipe = pipes_[flow];
  pipe.bytes = pipe.left = bytes;
  pipe.since_ns = pipe.finish_ns;
  pipe.finish_ns += bytes / pipe.rate;
  if (pipe.finish_ns <= static_cast<double>(now_ns)) {
    count(flow, bytes);
    return true;
  }
  finish_at_ns_ = std::min(finish_at_ns_, on_tick(pipe.finish_ns));
  return false;
}

void Fluid::rest(int flow, std::uint64_t now_ns) {
  share_.stop(flow);
  changed(now_ns);
}

void Fluid::count(int flow, double bytes) {
  for (const int r : share_.resources_of(flow)) bytes_[r] += bytes;
}

void Fluid::set_node(int node, std::int64_t out_kbps, std::int64_t in_kbps, std::uint64_t now_ns) {
  share_.set_capacity(out(node), bytes_per_ns(out_kbps));
  share_.set_capacity(in(node), bytes_per_ns(in_kbps));
  changed(now_ns);
}

void Fluid::set_rack(int rack, std::int64_t up_kbps, std::int64_t down_kbps, std::uint64_t now_ns) {
  share_.set_capacity(up(rack), rack_bytes_per_ns(up_kbps));
  share_.set_capacity(down(rack), rack_bytes_per_ns(down_kbps));
  changed(now_ns);
}

}  // namespace riffle::sim
