#include "plugin/collective/adapt/replanner.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/base/byte_io.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

// Without traffic for this many samples nobody needs to be woken any more.
constexpr int kIdleSamples = 20;
// Up to this many links every sample looks at all; more of them make samples rarer.
constexpr std::uint64_t kLinksPerSample = 64;

void put_rate(ByteWriter* w, const probe::PassiveRate& r) {
  w->number(static_cast<std::uint64_t>(r.limit_kbps));
  w->number(static_cast<std::uint64_t>(r.peak_kbps));
  w->number(static_cast<std::uint64_t>(r.limit_ms));
}

probe::PassiveRate get_rate(ByteReader* reader) {
  // Nobody carries more, or longer, than this; so sums and products stay in range.
  const auto number = [reader] {
    return static_cast<std::int64_t>(std::min<std::uint64_t>(reader->number(), 1ull << 40));
  };
  probe::PassiveRate r;
  r.limit_kbps = number();
  r.peak_kbps = number();
  r.limit_ms = number();
  return r;
}

}  // namespace

Replanner::Replanner(Mesh* mesh, ControlChannel* channel, Engine* engine, TimerService* timers,
                     Background* background, ReplanOptions options, ReplanHooks hooks)
    : mesh_(mesh),
      channel_(channel),
      engine_(engine),
      timers_(timers),
      background_(background),
      options_(std::move(options)),
      hooks_(std::move(hooks)),
      switch_(
          mesh->rank(), mesh->size(),
          {.number = mesh->number_of(mesh->rank()),
           .send =
               [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> message) {
                 channel_->send(peer, FrameType::kControl, kind, std::move(message));
               },
           .prepare =
               [this](const PlanSwitch::Order& order, const std::function<void(Status)>& prepared) {
                 prepare(order, prepared);
               },
           .hold = [this](std::uint64_t horizon_ns) { return hold(horizon_ns); },
           .use = [this](std::uint64_t seq) { engine_->switch_at(seq); },
           .drop = [this] { engine_->drop_prepared(); },
           .decided = [this](const Result<std::uint64_t>& seq) { decided(seq); }}),
      meter_(mesh->size()),
      seen_(mesh->size()),
      samples_(mesh->size()) {
  for (const int child : {2 * mesh->rank() + 1, 2 * mesh->rank() + 2}) {
    if (child < mesh->size()) children_.push_back(child);
  }
  if (hooks_.party != nullptr) make_agreement();
}

Replanner::~Replanner() { stop(); }

void Replanner::start(const PlanSet& plans, const PlanBasis& basis) {
  is_started_ = true;
  mark_ns_ = asked_ns_ = mesh_->now_ns();
  if (!is_root() || !is_on()) return;
  rates_.emplace(basis.fabric, basis.is_nominal);
  hysteresis_.emplace(basis.fabric);
  options_.plan.small_message_ns = basis.small_message_ns;
  // Rates that nobody measured mean nothing in Mbit/s.
  slow_.emplace(basis.is_nominal ? 0 : options_.least_kbps, mesh_->size());
  plans_ = std::make_shared<const PlanSet>(plans);
  counted_ = hooks_.count();
  tell_network(basis);
}

void Replanner::stop() {
  is_over_ = true;
  if (sync_) sync_->stop();
  if (timer_) timers_->cancel(*timer_);
  timer_.reset();
}

void Replanner::departed(int peer) {
  anybody_left_ = true;
  if (!is_on()) return;
  switch_.departed(peer);
  if (sync_) sync_->departed(peer);
}

// Everybody has to know who is behind a limited uplink and how fast the own link is.
void Replanner::tell_network(const PlanBasis& basis) {
  const Fabric& fabric = basis.fabric;
  const bool has_uplinks =
      std::any_of(fabric.racks.begin(), fabric.racks.end(),
                  [](const RackLink& r) { return r.up_kbps > 0 || r.down_kbps > 0; });
  if (basis.is_nominal && !has_uplinks) return;
  ByteWriter w;
  for (const NodeLink& node : fabric.nodes) {
    w.number(has_uplinks ? static_cast<std::uint64_t>(node.rack) : 0);
    w.number(basis.is_nominal ? 0 : static_cast<std::uint64_t>(node.out_kbps));
    w.number(basis.is_nominal ? 0 : static_cast<std::uint64_t>(node.in_kbps));
  }
  (void)take_network(w.take());
}

Status Replanner::take_network(const std::vector<std::uint8_t>& message) {
  struct Node {
    std::uint64_t rack, out_kbps, in_kbps;
  };
  ByteReader reader(message);
  std::vector<Node> nodes(mesh_->size());
  for (Node& node : nodes) {
    node.rack = reader.number();
    node.out_kbps = reader.number();
    node.in_kbps = reader.number();
  }
  if (!reader.is_complete()) return remote_error("mangled message about the network");
  const Node& own = nodes[mesh_->rank()];
  std::vector<bool> is_far(mesh_->size());
  for (int peer = 0; peer < mesh_->size(); ++peer) is_far[peer] = nodes[peer].rack != own.rack;
  meter_.set_far(std::move(is_far));
  meter_.set_own_rate(own.out_kbps, own.in_kbps);
  for (const int child : children_) channel_->send(child, FrameType::kControl, kNetwork, message);
  return Status::ok();
}

// -------------------------------------------------------------------------------------- measuring

void Replanner::operation_posted() {
  if (!is_on()) return;
  idle_samples_ = 0;
  if (!timer_) {
    meter_.pause();
    for (int peer = 0; peer < mesh_->size(); ++peer) {
      if (peer != mesh_->rank()) seen_[peer] = mesh_->activity(peer);
    }
    sampled_ns_ = mesh_->now_ns();
    sample_later();
  }
  if (!is_root() || is_gathering_ || is_planning_ || switch_.is_running() || anybody_left_) return;
  if (sync_ && sync_->is_running()) return;
  const std::uint64_t count = hooks_.count();
  if (count - counted_ < options_.collectives) return;
  if (mesh_->now_ns() - asked_ns_ < options_.shortest_ns) return;
  counted_ = count;
  ask();
}

void Replanner::sample_later() {
  const std::uint64_t links = static_cast<std::uint64_t>(mesh_->size());
  const std::uint64_t stretch = (links + kLinksPerSample - 1) / kLinksPerSample;
  timer_ = timers_->call_at(mesh_->now_ns() + stretch * probe::RateMeter::kSampleNs, [this] {
    timer_.reset();
    sample();
  });
}

void Replanner::sample() {
  const std::uint64_t now = mesh_->now_ns();
  const std::uint64_t took = now - std::exchange(sampled_ns_, now);
  bool any = false;
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer == mesh_->rank()) continue;
    const LinkActivity is = mesh_->activity(peer);
    const LinkActivity was = std::exchange(seen_[peer], is);
    // A link that is gone has nothing.
    const auto more = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; };
    samples_[peer] = {more(is.out_bytes, was.out_bytes), more(is.in_bytes, was.in_bytes),
                      more(is.busy_ns, was.busy_ns), is.of_peer.receiver_is_slow,
                      is.of_peer.sender_is_full};
    any |= samples_[peer].out_bytes > 0 || samples_[peer].in_bytes > 0;
  }
  if (took > 0) meter_.add(took, samples_);
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank()) mesh_->hint(peer, {meter_.blocked_by(peer), meter_.is_full()});
  }
  idle_samples_ = any ? 0 : idle_samples_ + 1;
  if (idle_samples_ < kIdleSamples) {
    sample_later();
  } else {
    meter_.pause();
  }
}

// -------------------------------------------------------------------------------------- gathering

void Replanner::ask() {
  asked_ns_ = mesh_->now_ns();
  begin_gathering(interval_ + 1);
}

void Replanner::begin_gathering(std::uint64_t interval) {
  interval_ = interval;
  is_gathering_ = true;
  children_missing_ = children_.size();
  gathered_.assign(1, {mesh_->rank(), meter_.take()});
  if (sync_) sync_->begin_gathering();
  const std::uint64_t now = mesh_->now_ns();
  if (now > mark_ns_) {
    chunks_per_ns_ =
        static_cast<double>(engine_->next_seq() - mark_seq_) / static_cast<double>(now - mark_ns_);
  }
  mark_seq_ = engine_->next_seq();
  mark_ns_ = now;
  ByteWriter w;
  w.number(interval_);
  const std::vector<std::uint8_t> message = w.take();
  for (const int child : children_) channel_->send(child, FrameType::kControl, kAsk, message);
  pass_on_if_complete();
}

Status Replanner::received(int peer, std::uint32_t kind, const std::vector<std::uint8_t>& message) {
  if (!is_on()) {
    // A node's connect may end a little after its parent's; its knobs are the same, so it is on.
    return is_over_ ? Status::ok()
                    : remote_error("a replanning interval's message before connect is over");
  }
  if (sync_ && sync_->is_mine(kind)) return sync_->received(peer, kind, message);
  if (switch_.is_mine(kind)) return switch_.received(peer, kind, message);
  if (kind == kNetwork && !is_root() && peer == parent()) return take_network(message);
  ByteReader reader(message);
  const std::uint64_t interval = reader.number();
  if (kind == kAsk && !is_root() && peer == parent() && reader.is_complete()) {
    begin_gathering(interval);
    return Status::ok();
  }
  const bool is_child = std::find(children_.begin(), children_.end(), peer) != children_.end();
  if (kind != kRates || !is_child) {
    return remote_error("unexpected message " + std::to_string(kind) +
                        " about a replanning interval");
  }
  std::vector<NodeRates> more;
  for (std::uint64_t n = reader.number(); n > 0 && reader.is_ok(); --n) {
    NodeRates r;
    r.rank = static_cast<int>(std::min<std::uint64_t>(reader.number(), kMaxNodes));
    r.report.out = get_rate(&reader);
    r.report.in = get_rate(&reader);
    r.report.far = get_rate(&reader);
    r.report.active_ms =
        static_cast<std::int64_t>(std::min<std::uint64_t>(reader.number(), 1ull << 40));
    more.push_back(r);
  }
  SyncReport calls;
  if (sync_) calls = SyncAgreement::get(&reader);
  if (!reader.is_complete() || more.size() > static_cast<std::size_t>(mesh_->size())) {
    return remote_error("mangled message about a replanning interval");
  }
  if (!is_gathering_ || interval != interval_) return Status::ok();
  gathered_.insert(gathered_.end(), more.begin(), more.end());
  if (sync_) sync_->add(calls);
  --children_missing_;
  pass_on_if_complete();
  return Status::ok();
}

void Replanner::pass_on_if_complete() {
  if (children_missing_ > 0) return;
  is_gathering_ = false;
  if (is_root()) return learn();
  ByteWriter w;
  w.number(interval_);
  w.number(gathered_.size());
  for (const NodeRates& r : gathered_) {
    w.number(static_cast<std::uint64_t>(r.rank));
    put_rate(&w, r.report.out);
    put_rate(&w, r.report.in);
    put_rate(&w, r.report.far);
    w.number(static_cast<std::uint64_t>(r.report.active_ms));
  }
  if (sync_) sync_->put(&w);
  channel_->send(parent(), FrameType::kControl, kRates, w.take());
}

}  // namespace riffle
