// Replanner: node 0 asks, and reports of all nodes come up the tree.
#include <algorithm>
#include <utility>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/collective/base/byte_io.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

// Rates of all pairs are n^2 numbers.
constexpr int kMostForPairs = 64;

}  // namespace

void Replanner::ask() {
  asked_ns_ = mesh_->now_ns();
  began_in_ = ended_in_;
  ended_in_.reset();
  if (engine_->generations() == 1) ended_in_ = engine_->generation();
  const bool asks_pairs = trials_.is_running() || trials_.is_suspicious() || looks_at_pairs();
  begin_gathering(interval_ + 1, asks_pairs && mesh_->size() <= kMostForPairs);
}

NodeRates Replanner::own_report(bool with_pairs) {
  NodeRates own;
  own.rank = mesh_->rank();
  own.report = sampler_.take();
  own.busy = engine_->busy().since(std::exchange(busy_, engine_->busy()));
  const std::uint64_t elapsed_ns = mesh_->now_ns() - mark_ns_;
  if (hooks_.wanted_ns && elapsed_ns > 0) {
    const std::uint64_t wanted_ns = hooks_.wanted_ns();
    const std::uint64_t before_ns = std::exchange(wanted_ns_, wanted_ns);
    const std::uint64_t more_ns = wanted_ns > before_ns ? wanted_ns - before_ns : 0;
    own.processor = processor_percent(more_ns, own.busy.busy_ns, elapsed_ns);
  }
  // Every byte of a sum goes out twice and comes in twice, about.
  own.others = own.busy.bytes > 0 ? own.busy.others * 100 / (4 * own.busy.bytes) : 0;
  activity_.resize(static_cast<std::size_t>(mesh_->size()));
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    probe::PairTime pair;
    if (peer != mesh_->rank()) {
      const LinkActivity is = mesh_->activity(peer);
      const LinkActivity was = std::exchange(activity_[static_cast<std::size_t>(peer)], is);
      const bool is_new = is.out_bytes < was.out_bytes || is.busy_ns < was.busy_ns;
      if (!is_new) pair = {is.out_bytes - was.out_bytes, (is.busy_ns - was.busy_ns) / 1000};
    }
    if (with_pairs) own.pairs.push_back(pair);
  }
  return own;
}

void Replanner::begin_gathering(std::uint64_t interval, bool with_pairs) {
  interval_ = interval;
  is_gathering_ = true;
  children_missing_ = children_.size();
  gathered_.assign(1, own_report(with_pairs));
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
  w.number(with_pairs ? 1 : 0);
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
  if (kind == kAsk && !is_root() && peer == parent()) {
    const std::uint64_t with_pairs = reader.number();
    if (!reader.is_complete() || with_pairs > 1) {
      return remote_error("mangled question of a replanning interval");
    }
    begin_gathering(interval, with_pairs == 1);
    return Status::ok();
  }
  const bool is_child = std::find(children_.begin(), children_.end(), peer) != children_.end();
  if (kind != kRates || !is_child) {
    return remote_error("unexpected message " + std::to_string(kind) +
                        " about a replanning interval");
  }
  const std::vector<NodeRates> more = get_rates(&reader);
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
  put_rates(&w, gathered_);
  if (sync_) sync_->put(&w);
  channel_->send(parent(), FrameType::kControl, kRates, w.take());
}

}  // namespace riffle
