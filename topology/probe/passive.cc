#include "topology/probe/passive.h"

#include <algorithm>

namespace riffle::probe {
namespace {

// A window is as long as it takes to see past the grain of acknowledgements and timers.
constexpr std::uint64_t kWindowBytes = 1 << 20;
constexpr std::uint64_t kLongestWindowNs = 100'000'000;
constexpr std::uint64_t kShortestWindowNs = 15'000'000;  // shorter ones do not count, unless full
constexpr std::size_t kMostWindows = 512;

// Data "waits" towards a peer that was busy for this part of a sample.
constexpr double kBusyShare = 0.75;
// Waiting towards this part of the peers in use means that our own link is the limit.
constexpr double kMostPeers = 0.75;
// A peer is in use for this long after something was sent to it. Long enough for a slow round: at
// its end only what the slowest peer is to get is left, and waits.
constexpr std::uint64_t kInUseNs = 1'000'000'000;
// A link is full from this part of its rate on, over about the last five samples.
constexpr double kFull = 0.9;
constexpr double kNewest = 0.2;
// Others' traffic comes and goes: a link that was full with it counts as such for this long.
constexpr std::uint64_t kSharedNs = 200'000'000;
// Receiving is the limit while this part of the bytes comes from peers that wait for us.
constexpr double kWaitingShare = 0.5;

std::int64_t link_kbps(std::uint64_t payload_bytes, std::uint64_t ns) {
  constexpr double kLinkPerPayload = 1514.0 / 1448.0;
  return static_cast<std::int64_t>(static_cast<double>(payload_bytes) * kLinkPerPayload * 8e6 /
                                   static_cast<double>(ns));
}

}  // namespace

RateMeter::RateMeter(int peers)
    : is_far_(peers, false), used_ns_(peers, 0), blocked_by_(peers, false) {
  for (Direction* d : {&out_, &in_, &far_}) d->windows.reserve(kMostWindows);
}

void RateMeter::add(std::uint64_t duration_ns, std::span<const LinkSample> links,
                    OthersSample others) {
  struct Side {
    std::uint64_t out_bytes = 0;
    int in_use = 0, busy = 0;
    int full = 0;    // of those that are busy
    int shared = 0;  // busy, too; what waits for them says nothing at all
    // What waits for full peers says nothing, unless there are no others.
    bool mostly_waits() const {
      return full == in_use - shared ||
             busy - shared - full >= kMostPeers * (in_use - shared - full);
    }
    bool says_something() const { return busy > shared; }
  };
  Side near, far;
  std::uint64_t in_bytes = 0, waiting_bytes = 0;
  const auto is_busy = [&](const LinkSample& link) {
    return static_cast<double>(link.busy_ns) >= kBusyShare * static_cast<double>(duration_ns);
  };
  for (std::size_t i = 0; i < links.size(); ++i) {
    const LinkSample& link = links[i];
    Side& side = is_far_[i] ? far : near;
    side.out_bytes += link.out_bytes;
    if (link.out_bytes > 0 || link.busy_ns > 0) used_ns_[i] = kInUseNs;
    side.in_use += used_ns_[i] > 0;
    used_ns_[i] -= std::min(used_ns_[i], duration_ns);
    side.busy += is_busy(link);
    side.full += is_busy(link) && link.peer_is_full && !link.peer_is_shared;
    side.shared += is_busy(link) && link.peer_is_shared;
    in_bytes += link.in_bytes;
    if (link.peer_waits_for_us) waiting_bytes += link.in_bytes;
  }
  out_.recent(near.out_bytes + far.out_bytes, others.out_bytes, duration_ns);
  in_.recent(in_bytes, others.in_bytes, duration_ns);
  const bool out_is_limit = near.says_something() && near.mostly_waits() && far.mostly_waits();
  const bool far_is_limit = !out_is_limit && far.says_something() && far.mostly_waits();
  const bool in_is_limit =
      in_bytes > 0 && static_cast<double>(waiting_bytes) >= kWaitingShare * in_bytes;
  for (std::size_t i = 0; i < links.size(); ++i) {
    // With a single peer it cannot be told which end it is: both take it for theirs.
    const bool is_alone = near.in_use == 1 && far.in_use == 0;
    blocked_by_[i] = is_busy(links[i]) && !is_far_[i] && !out_.is_full() && !out_.is_shared() &&
                     (!out_is_limit || is_alone);
  }
  if (near.out_bytes + far.out_bytes + in_bytes > 0) active_ns_ += duration_ns;
  out_.add(out_is_limit, near.out_bytes + far.out_bytes, others.out_bytes, duration_ns);
  in_.add(in_is_limit, in_bytes, others.in_bytes, duration_ns);
  far_.add(far_is_limit, far.out_bytes, 0, duration_ns);  // where others' bytes go is not known
}

void RateMeter::pause() {
  for (Direction* d : {&out_, &in_, &far_}) d->close();
  std::fill(blocked_by_.begin(), blocked_by_.end(), false);
}

PassiveReport RateMeter::take() {
  PassiveReport report;
  report.out = out_.take();
  report.in = in_.take();
  report.far = far_.take();
  report.active_ms = static_cast<std::int64_t>(active_ns_ / 1'000'000);
  active_ns_ = 0;
  return report;
}

void RateMeter::Direction::recent(std::uint64_t more_ours, std::uint64_t more_others,
                                  std::uint64_t more_ns) {
  const auto total_kbps = static_cast<double>(link_kbps(more_ours + more_others, more_ns));
  recent_kbps += kNewest * (total_kbps - recent_kbps);
  // At once and for a while: what waits meanwhile is blamed on no link.
  const double full_kbps = kFull * static_cast<double>(own_kbps);
  const auto ours_kbps = static_cast<double>(link_kbps(more_ours, more_ns));
  shared_ns -= std::min(shared_ns, more_ns);
  if (own_kbps > 0 && total_kbps >= full_kbps && ours_kbps < full_kbps) shared_ns = kSharedNs;
}

bool RateMeter::Direction::is_full() const {
  return own_kbps > 0 && recent_kbps >= kFull * static_cast<double>(own_kbps);
}

void RateMeter::Direction::add(bool limit, std::uint64_t more_ours, std::uint64_t more_others,
                               std::uint64_t more_ns) {
  if (limit != is_limit) close();
  is_limit = limit;
  ours += more_ours;
  others += more_others;
  ns += more_ns;
  if (ours >= kWindowBytes || ns >= kLongestWindowNs) close();
}

void RateMeter::Direction::close() {
  const bool counts = ours >= kWindowBytes || (ours > 0 && ns >= kShortestWindowNs);
  if (counts && ns > 0) {
    const Window window = {link_kbps(ours + others, ns), link_kbps(ours, ns), ns, is_limit};
    if (windows.size() < kMostWindows) {
      windows.push_back(window);
    } else {
      windows[next++ % kMostWindows] = window;
    }
  }
  ours = others = ns = 0;
}

PassiveRate RateMeter::Direction::take() {
  close();
  PassiveRate rate;
  // The value below which the windows make up `share` of the time.
  const auto quantile = [this](double share, bool only_limit, std::int64_t Window::*kbps) {
    std::sort(windows.begin(), windows.end(),
              [kbps](const Window& a, const Window& b) { return a.*kbps < b.*kbps; });
    std::uint64_t total = 0;
    for (const Window& w : windows) total += !only_limit || w.is_limit ? w.ns : 0;
    std::uint64_t below = 0;
    for (const Window& w : windows) {
      if (only_limit && !w.is_limit) continue;
      below += w.ns;
      if (static_cast<double>(below) >= share * static_cast<double>(total)) return w.*kbps;
    }
    return std::int64_t{0};
  };
  std::uint64_t limit_ns = 0;
  for (const Window& w : windows) limit_ns += w.is_limit ? w.ns : 0;
  rate.limit_ms = static_cast<std::int64_t>(limit_ns / 1'000'000);
  rate.limit_kbps = quantile(0.5, true, &Window::kbps);
  rate.peak_kbps = quantile(0.9, false, &Window::ours_kbps);
  windows.clear();
  next = 0;
  return rate;
}

}  // namespace riffle::probe
