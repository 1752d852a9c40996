#include "plugin/collective/connect/probe_flows.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/engine/engine.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

constexpr std::uint64_t kAnswersFirst = 0, kDataThen = 1;  // priorities
constexpr std::size_t kMostEarly = 4096;                   // frames kept for an order on its way

template <class Flows>
auto* find_peer(Flows& flows, int peer) {
  const auto it = std::find_if(flows.begin(), flows.end(),
                               [peer](const auto& flow) { return flow.peer == peer; });
  return it == flows.end() ? nullptr : &*it;
}

}  // namespace

ProbeFlows::ProbeFlows(Mesh* mesh) : mesh_(mesh) {}

std::byte* ProbeFlows::get_receive_buffer() {
  waste_.resize(kFrameBytes);
  return waste_.data();
}

void ProbeFlows::start(const ProbeOrder& order, std::function<void()> over) {
  zeros_.resize(kFrameBytes);
  order_ = order;
  over_ = std::move(over);
  outgoing_.clear();
  incoming_.clear();
  const std::uint64_t now = mesh_->now_ns();
  for (const probe::Flow& f : order.flows) {
    if (f.from == mesh_->rank()) outgoing_.push_back({.peer = f.to, .window = {}});
    if (f.to == mesh_->rank()) {
      incoming_.push_back({f.from, probe::FlowMeter(1000ull * order.duration_us)});
    }
  }
  for (const Outgoing& flow : outgoing_) say(flow.peer, ProbeFrame::kPing, now, 0);
  for (const Early& e : std::exchange(early_, {})) take(e.peer, e.frame, e.length);
  finish_if_over();
}

std::vector<ProbeReport::Entry> ProbeFlows::entries() const {
  std::vector<ProbeReport::Entry> all;
  for (const Incoming& flow : incoming_) {
    probe::Sample sample = flow.meter.sample(flow.meter.bytes() >= order_.most_bytes);
    sample.hops = mesh_->hops(flow.peer);
    all.push_back({{flow.peer, mesh_->rank()}, sample, flow.meter.bytes()});
  }
  for (const Outgoing& flow : outgoing_) {
    probe::Sample sample;
    sample.rtt_us = static_cast<std::int64_t>(flow.rtt_ns / 1000);
    sample.hops = mesh_->hops(flow.peer);
    all.push_back({{mesh_->rank(), flow.peer}, sample, 0});
  }
  return all;
}

void ProbeFlows::say(int peer, ProbeFrame::Step step, std::uint64_t stamp, std::uint64_t bytes) {
  ProbeFrame frame;
  frame.step = step;
  frame.round = order_.number;
  frame.stamp = stamp;
  frame.bytes = bytes;
  mesh_->send(peer, header_of(frame), {}, kNoCookie, kAnswersFirst);
}

void ProbeFlows::arrived(int peer, const FrameHeader& header) {
  take(peer, frame_of<ProbeFrame>(header), header.length);
}

void ProbeFlows::take(int peer, const ProbeFrame& frame, std::uint32_t length) {
  if (frame.round != order_.number) {
    // Orders come down a tree: a partner may have had its own earlier.
    if (frame.round > order_.number && early_.size() < kMostEarly) {
      early_.push_back({peer, frame, length});
    }
    return;
  }
  const std::uint64_t now = mesh_->now_ns();
  Outgoing* const out = find_peer(outgoing_, peer);
  Incoming* const in = find_peer(incoming_, peer);
  switch (frame.step) {
    case ProbeFrame::kPing:
      if (in != nullptr) {
        in->pinged_ns = now;
        in->ping_stamp = frame.stamp;
      }
      return say(peer, ProbeFrame::kPong, frame.stamp, now - frame.stamp);
    case ProbeFrame::kPong:
      if (out == nullptr || out->stop_ns != 0) return;
      (void)queued_ns(peer, frame.bytes);
      out->rtt_ns = std::max<std::uint64_t>(1000, now - std::min(now, frame.stamp));
      out->stop_ns = now + 1000ull * order_.duration_us;
      return pump(*out);
    case ProbeFrame::kData:
      if (in != nullptr) {
        // As long after the ping as it was sent after it, even if it was lost at first.
        const std::uint64_t due_ns = in->pinged_ns + (frame.stamp - in->ping_stamp);
        if (in->meter.bytes() == 0 && due_ns < now) in->meter.begins(due_ns);
        in->meter.arrived(now, length);
      }
      return say(peer, ProbeFrame::kAnswer, now - frame.stamp, length);
    case ProbeFrame::kAnswer:
      if (out == nullptr || frame.bytes > out->in_flight) return;
      out->in_flight -= frame.bytes;
      out->window.acknowledged(frame.bytes, queued_ns(peer, frame.stamp));
      return pump(*out);
    case ProbeFrame::kEnd:
      if (in == nullptr) return;
      in->is_over = true;
      return finish_if_over();
    default:
      return;
  }
}

std::uint64_t ProbeFlows::queued_ns(int peer, std::uint64_t way_ns) {
  // Differences of two clocks wrap around, and so do differences of these.
  const auto [quickest, is_first] = quickest_ns_.emplace(peer, way_ns);
  const auto longer_ns = static_cast<std::int64_t>(way_ns - quickest->second);
  if (longer_ns < 0) quickest->second = way_ns;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(longer_ns, 0));
}

void ProbeFlows::pump(Outgoing& flow) {
  if (flow.is_over) return;
  const std::uint64_t now = mesh_->now_ns();
  while (now < flow.stop_ns && flow.sent < order_.most_bytes &&
         flow.window.may_send(flow.in_flight)) {
    ProbeFrame frame;
    frame.step = ProbeFrame::kData;
    frame.round = order_.number;
    frame.stamp = now;
    mesh_->send(flow.peer, header_of(frame, kFrameBytes), zeros_, kNoCookie, kDataThen);
    flow.in_flight += kFrameBytes;
    flow.sent += kFrameBytes;
  }
  if (flow.in_flight > 0) return;
  flow.is_over = true;
  say(flow.peer, ProbeFrame::kEnd, now, 0);
  finish_if_over();
}

void ProbeFlows::finish_if_over() {
  const auto is_over = [](const auto& flow) { return flow.is_over; };
  if (!over_ || !std::all_of(outgoing_.begin(), outgoing_.end(), is_over) ||
      !std::all_of(incoming_.begin(), incoming_.end(), is_over)) {
    return;
  }
  std::exchange(over_, nullptr)();
}

}  // namespace riffle
