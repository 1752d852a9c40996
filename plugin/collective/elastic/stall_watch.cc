#include "plugin/collective/elastic/stall_watch.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/base/byte_io.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/time.h"

namespace riffle {
namespace {

constexpr std::uint64_t kLongestPeriodNs = 5 * kSecond;
constexpr std::uint64_t kGraceNs = kSecond;  // beyond two periods, for what the others have to tell

std::vector<std::uint8_t> encode(const std::vector<int>& nodes) {
  ByteWriter w;
  w.number(nodes.size());
  for (const int node : nodes) w.number(static_cast<std::uint64_t>(node));
  return w.take();
}

}  // namespace

StallWatch::StallWatch(const Mesh* mesh, TimerService* timers, std::uint64_t limit_ns, Hooks hooks)
    : mesh_(mesh),
      timers_(timers),
      limit_ns_(limit_ns),
      period_ns_(std::min(limit_ns / 8, kLongestPeriodNs)),
      hooks_(std::move(hooks)) {}

void StallWatch::start() {
  if (limit_ns_ == 0) return;
  begin_anew(mesh_->now_ns());
  schedule();
}

void StallWatch::stop() {
  if (timer_) timers_->cancel(*timer_);
  timer_.reset();
}

void StallWatch::schedule() {
  due_ns_ = mesh_->now_ns() + period_ns_;
  timer_ = timers_->call_at(due_ns_, [this] {
    timer_.reset();
    look();
  });
}

void StallWatch::begin_anew(std::uint64_t since_ns) {
  since_ns_ = since_ns;
  has_told_ = has_spoken_ = false;
  told_.clear();
}

void StallWatch::look() {
  const std::uint64_t now = mesh_->now_ns();
  const std::optional<Nodes> waits = hooks_.waits_for();
  if (std::exchange(has_moved_, false) || !waits) begin_anew(now);
  if (now - due_ns_ > period_ns_) since_ns_ = std::min(now, since_ns_ + (now - due_ns_));
  schedule();
  if (!waits || now - since_ns_ < limit_ns_) return;
  if (!std::exchange(has_told_, true)) hooks_.tell(encode(*waits));
  if (now - since_ns_ < limit_ns_ + 2 * period_ns_ + kGraceNs) return;
  if (!std::exchange(has_spoken_, true)) speak(*waits);
}

Status StallWatch::heard(int peer, const std::vector<std::uint8_t>& message) {
  ByteReader r(message);
  Nodes nodes;
  const auto size = static_cast<std::uint64_t>(mesh_->size());
  for (std::uint64_t n = std::min(r.number(), size); n > 0; --n) {
    const std::uint64_t node = r.number();
    if (node >= size) return remote_error("it waits for node " + std::to_string(node));
    nodes.push_back(static_cast<int>(node));
  }
  if (!r.is_complete()) return remote_error("a malformed message about what it waits for");
  told_[peer] = std::move(nodes);
  return Status::ok();
}

// Of all that is waited for, what does not wait; where all wait for each other, what this node
// does.
void StallWatch::speak(const Nodes& own) {
  told_[mesh_->rank()] = own;
  for (const auto& [node, whom] : told_) {
    Nodes roots;
    std::copy_if(whom.begin(), whom.end(), std::back_inserter(roots),
                 [this](int other) { return !told_.contains(other); });
    if (!roots.empty()) return hooks_.stalled(node, roots);
  }
  hooks_.stalled(mesh_->rank(), own);
}

}  // namespace riffle
