#include "plugin/collective/connect/probe_flows.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/engine/engine.h"

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
  for (const probe::Flow& f : order.flows) {
    if (f.from == mesh_->rank()) outgoing_.push_back({.peer = f.to, .window = {}});
    if (f.to == mesh_->rank()) {
      incoming_.push_back({f.from, probe::FlowMeter(1000ull * order.duration_us)});
    }
  }
  for (const Outgoing& flow : outgoing_) say(flow.peer, kPing, mesh_->now_ns(), 0);
  const std::vector<FrameHeader> headers = std::exchange(early_, {});
  const std::vector<int> peers = std::exchange(early_from_, {});
  for (std::size_t i = 0; i < headers.size(); ++i) arrived(peers[i], headers[i]);
  finish_if_over();
}

std::vector<ProbeReport::Entry> ProbeFlows::entries() const {
  std::vector<ProbeReport::Entry> all;
  for (const Incoming& flow : incoming_) {
    all.push_back({{flow.peer, mesh_->rank()}, flow.meter.sample(), flow.meter.bytes()});
  }
  for (const Outgoing& flow : outgoing_) {
    probe::Sample sample;
    sample.rtt_us = static_cast<std::int64_t>(flow.rtt_ns / 1000);
    all.push_back({{mesh_->rank(), flow.peer}, sample, 0});
  }
  return all;
}

void ProbeFlows::say(int peer, Step step, std::uint64_t stamp, std::uint64_t bytes) {
  FrameHeader header;
  header.type = FrameType::kProbe;
  header.flags = step;
  header.key = order_.number;
  header.seq = stamp;
  header.total = bytes;
  mesh_->send(peer, header, {}, kNoCookie, kAnswersFirst);
}

void ProbeFlows::arrived(int peer, const FrameHeader& header) {
  if (header.key != order_.number) {
    // Orders come down a tree: a partner may have had its own earlier.
    if (header.key > order_.number && early_.size() < kMostEarly) {
      early_.push_back(header);
      early_from_.push_back(peer);
    }
    return;
  }
  const std::uint64_t now = mesh_->now_ns();
  Outgoing* const out = find_peer(outgoing_, peer);
  Incoming* const in = find_peer(incoming_, peer);
  switch (header.flags) {
    case kPing:
      return say(peer, kPong, header.seq, 0);
    case kPong:
      if (out == nullptr || out->stop_ns != 0) return;
      out->rtt_ns = std::max<std::uint64_t>(1000, now - std::min(now, header.seq));
      out->stop_ns = now + 1000ull * order_.duration_us;
      return pump(*out);
    case kData:
      if (in != nullptr) in->meter.arrived(now, header.length);
      return say(peer, kAnswer, header.seq, header.length);
    case kAnswer:
      if (out == nullptr || header.total > out->in_flight) return;
      out->in_flight -= header.total;
      out->window.acknowledged(header.total, now - std::min(now, header.seq));
      return pump(*out);
    case kEnd:
      if (in == nullptr) return;
      in->is_over = true;
      return finish_if_over();
    default:
      return;
  }
}

void ProbeFlows::pump(Outgoing& flow) {
  if (flow.is_over) return;
  const std::uint64_t now = mesh_->now_ns();
  while (now < flow.stop_ns && flow.sent < order_.most_bytes &&
         flow.window.may_send(flow.in_flight)) {
    FrameHeader header;
    header.type = FrameType::kProbe;
    header.flags = kData;
    header.key = order_.number;
    header.seq = now;
    header.length = kFrameBytes;
    mesh_->send(flow.peer, header, zeros_, kNoCookie, kDataThen);
    flow.in_flight += kFrameBytes;
    flow.sent += kFrameBytes;
  }
  if (flow.in_flight > 0) return;
  flow.is_over = true;
  say(flow.peer, kEnd, now, 0);
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
