#include "lab/nccl_host/launch_builder.h"

#include <algorithm>

namespace riffle::host {
namespace {

std::vector<Primitive> ring_primitives(const Scheduled& s, const Part& part, RingPlace place) {
  const Collective& c = s.what;
  const std::size_t element = size_of(c.type);
  const auto* send = static_cast<const std::byte*>(c.send);
  switch (c.function) {
    case Function::kAllReduce:
      return ring_all_reduce(part, place, element);
    case Function::kAllGather: {
      const std::size_t own = static_cast<std::size_t>(place.index) * c.count * element;
      return ring_all_gather(part, place, c.count,
                             send == static_cast<std::byte*>(c.receive) + own);
    }
    case Function::kReduceScatter:
      return ring_reduce_scatter(part, place, c.count);
    case Function::kBroadcast:
      return ring_broadcast(part, place, c.root, c.send == c.receive);
    default:
      return ring_reduce(part, place, c.root);
  }
}

}  // namespace

TreePlace channel_tree(const Layout& layout, int rank, int channel) {
  const int first_half = (layout.channels + 1) / 2;
  return tree_place(layout.ranks, rank, channel < first_half ? 0 : 1);
}

Program LaunchBuilder::program_for(const Collective& c, Steps steps) const {
  Program p;
  p.steps = steps;
  p.step_bytes = layout_.buffer_bytes / kSteps;
  p.input = c.send;
  p.output = c.receive;
  p.type = c.type;
  p.op = c.op;
  p.ranks = layout_.ranks;
  return p;
}

// The proxies move as many chunks as the program says, so the two cannot disagree.
void LaunchBuilder::add_program(int channel, Way way, Program program,
                                std::vector<NetLink*> receives, std::vector<NetLink*> sends,
                                std::optional<std::size_t> capacity_limit) {
  auto count = [&](bool Primitive::*direction) {
    return static_cast<std::uint64_t>(
        std::count_if(program.primitives.begin(), program.primitives.end(),
                      [&](const Primitive& p) { return p.*direction; }));
  };
  const auto chunk = static_cast<std::uint64_t>(program.steps.chunk);
  const std::size_t capacity =
      capacity_limit.value_or(program.step_bytes * static_cast<std::size_t>(program.steps.slice));
  const std::uint64_t received = count(&Primitive::receive), sent = count(&Primitive::send);
  for (NetLink* link : receives) {
    program.receives.push_back(&link->fifo());
    if (received != 0)
      launch_.link_ops.push_back({link, {received * chunk, program.steps, capacity}});
  }
  for (NetLink* link : sends) {
    program.sends.push_back(&link->fifo());
    if (sent != 0) launch_.link_ops.push_back({link, {sent * chunk, program.steps, capacity}});
  }
  if (way == Way::kMessages) {
    std::vector<Program> alone;
    alone.push_back(std::move(program));
    launch_.lanes.emplace_back(std::move(alone));
  } else {
    lanes_[{channel, way}].push_back(std::move(program));
  }
}

void LaunchBuilder::add_ring(const Scheduled& s, int channel, const Part& part) {
  const RingPlace place{rank_, layout_.ranks};
  const int next = (rank_ + 1) % layout_.ranks;
  const int previous = (rank_ + layout_.ranks - 1) % layout_.ranks;
  Program p = program_for(s.what, steps_of(s.what.function, s.algorithm));
  p.primitives = ring_primitives(s, part, place);
  add_program(channel, Way::kForth, std::move(p),
              {&net_.receive_link({channel, previous, Use::kCollective})},
              {&net_.send_link({channel, next, Use::kCollective})});
}

void LaunchBuilder::add_tree(const Scheduled& s, int channel, const Part& part) {
  const TreePlace place = channel_tree(layout_, rank_, channel);
  const TreeRole role = place.up < 0         ? TreeRole::kRoot
                        : place.down.empty() ? TreeRole::kLeaf
                                             : TreeRole::kInner;
  std::vector<NetLink*> from_children, to_children, from_parent, to_parent;
  for (int d : place.down) {
    from_children.push_back(&net_.receive_link({channel, d, Use::kCollective}));
    to_children.push_back(&net_.send_link({channel, d, Use::kCollective}));
  }
  if (place.up >= 0) {
    from_parent.push_back(&net_.receive_link({channel, place.up, Use::kCollective}));
    to_parent.push_back(&net_.send_link({channel, place.up, Use::kCollective}));
  }
  Program up = program_for(s.what, {1, 1});
  up.primitives = tree_up(part, role);
  add_program(channel, Way::kForth, std::move(up), from_children,
              role == TreeRole::kRoot ? to_children : to_parent);
  if (role == TreeRole::kRoot) return;
  Program down = program_for(s.what, {1, 1});
  down.primitives = tree_down(part, role);
  add_program(channel, Way::kBack, std::move(down), from_parent, to_children);
}

void LaunchBuilder::add_collnet(const Scheduled& s) {
  const std::size_t element = size_of(s.what.type);
  const std::size_t bytes = s.what.count * element;
  const std::size_t loop = s.chunk_bytes * static_cast<std::size_t>(s.channels);
  for (int c = 0; c < s.channels; ++c) {
    Program out = program_for(s.what, {1, 1});
    out.primitives = collnet(s.what.count, s.chunk_bytes / element, c, s.channels, true);
    out.sends.push_back(&collnet_->to_network(c));
    lanes_[{c, Way::kForth}].push_back(std::move(out));
    Program back = program_for(s.what, {1, 1});
    back.primitives = collnet(s.what.count, s.chunk_bytes / element, c, s.channels, false);
    back.receives.push_back(&collnet_->from_network(c));
    lanes_[{c, Way::kBack}].push_back(std::move(back));
  }
  launch_.collnet_ops.push_back({s.channels, (bytes + loop - 1) / loop, s.chunk_bytes, s.what.type,
                                 network_op(s.what.op), bytes});
}

void LaunchBuilder::add(const Scheduled& s) {
  if (s.what.count == 0) return;  // NCCL returns at once
  if (s.algorithm == Algorithm::kCollNetChain) return add_collnet(s);
  for (std::size_t i = 0; i < s.parts.size(); ++i) {
    const int channel = s.first_channel + static_cast<int>(i);
    if (s.algorithm == Algorithm::kTree)
      add_tree(s, channel, s.parts[i]);
    else
      add_ring(s, channel, s.parts[i]);
  }
}

void LaunchBuilder::add_message(const Collective& m) {
  const bool sending = m.function == Function::kSend;
  const MessageCut cut = cut_message(m.count, layout_);
  const int distance = (sending ? m.root - rank_ : rank_ - m.root) + layout_.ranks;
  const int first = message_channel(distance % layout_.ranks, layout_);
  for (int part = 0; part < cut.channels; ++part) {
    const int channel = (first + part) & (message_channels(layout_.channels) - 1);
    const std::size_t begin = std::min(m.count, static_cast<std::size_t>(part) * cut.part_bytes);
    const std::size_t count = std::min(cut.part_bytes, m.count - begin);
    Program p = program_for(m, {1, 1});
    p.step_bytes = kMessageStepBytes;
    p.primitives = stream({begin, count, cut.chunk_bytes}, sending);
    const Endpoint at{channel, m.root, Use::kPointToPoint};
    std::vector<NetLink*> receives, sends;
    if (sending)
      sends.push_back(&net_.send_link(at));
    else
      receives.push_back(&net_.receive_link(at));
    add_program(channel, Way::kMessages, std::move(p), receives, sends, cut.capacity_bytes);
  }
}

Launch LaunchBuilder::take() {
  for (auto& [key, programs] : lanes_) launch_.lanes.emplace_back(std::move(programs));
  lanes_.clear();
  return std::exchange(launch_, {});
}

}  // namespace riffle::host
