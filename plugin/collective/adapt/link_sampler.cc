#include "plugin/collective/adapt/link_sampler.h"

#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

// Without traffic for so many samples no timer needs to run.
constexpr int kIdleSamples = 20;
// Up to this many links every sample looks at all; more of them make samples rarer.
constexpr std::uint64_t kLinksPerSample = 64;

// A link that is gone has nothing.
std::uint64_t more(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

LinkSampler::LinkSampler(Mesh* mesh, TimerService* timers)
    : mesh_(mesh),
      timers_(timers),
      meter_(mesh->size()),
      seen_(mesh->size()),
      samples_(mesh->size()) {}

void LinkSampler::set_network(std::vector<bool> is_far, std::uint64_t out_kbps,
                              std::uint64_t in_kbps) {
  meter_.set_far(std::move(is_far));
  meter_.set_own_rate(out_kbps, in_kbps);
}

void LinkSampler::wake() {
  idle_samples_ = 0;
  if (timer_) return;
  meter_.pause();
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank()) seen_[peer] = mesh_->activity(peer);
  }
  others_seen_ = mesh_->others_on_nics();
  sampled_ns_ = mesh_->now_ns();
  sample_later();
}

void LinkSampler::stop() {
  if (timer_) timers_->cancel(*timer_);
  timer_.reset();
}

void LinkSampler::sample_later() {
  const std::uint64_t links = static_cast<std::uint64_t>(mesh_->size());
  const std::uint64_t stretch = (links + kLinksPerSample - 1) / kLinksPerSample;
  timer_ = timers_->call_at(mesh_->now_ns() + stretch * probe::RateMeter::kSampleNs, [this] {
    timer_.reset();
    sample();
  });
}

void LinkSampler::sample() {
  const std::uint64_t now = mesh_->now_ns();
  const std::uint64_t took = now - std::exchange(sampled_ns_, now);
  bool any = false;
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer == mesh_->rank()) continue;
    const LinkActivity is = mesh_->activity(peer);
    const LinkActivity was = std::exchange(seen_[peer], is);
    samples_[peer] = {more(is.out_bytes, was.out_bytes), more(is.in_bytes, was.in_bytes),
                      more(is.busy_ns, was.busy_ns),     is.of_peer.receiver_is_slow,
                      is.of_peer.sender_is_full,         is.of_peer.sender_is_shared};
    any |= samples_[peer].out_bytes > 0 || samples_[peer].in_bytes > 0;
  }
  const NicBytes others = mesh_->others_on_nics();
  const NicBytes before = std::exchange(others_seen_, others);
  if (took > 0) {
    meter_.add(took, samples_, {more(others.out, before.out), more(others.in, before.in)});
  }
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank())
      mesh_->hint(peer, {meter_.blocked_by(peer), meter_.is_full(), meter_.is_shared()});
  }
  idle_samples_ = any ? 0 : idle_samples_ + 1;
  if (idle_samples_ < kIdleSamples) {
    sample_later();
  } else {
    meter_.pause();
  }
}

}  // namespace riffle
