#include "topology/probe/flow_meter.h"

#include <algorithm>
#include <cstdlib>

namespace riffle::probe {
namespace {

constexpr std::uint64_t kLeastNs = 200'000;    // anything shorter says nothing
constexpr std::uint64_t kMuchBytes = 4 << 20;  // rather all that was to be sent
constexpr double kSteady = 0.25;               // halves may differ by this much

// Bytes per nanosecond as kbit/s.
double kbps(std::uint64_t bytes, std::uint64_t ns) {
  return ns == 0 ? 0 : static_cast<double>(bytes) * 8e6 / static_cast<double>(ns);
}

}  // namespace

FlowMeter::FlowMeter(std::uint64_t limit_ns) : limit_ns_(std::max<std::uint64_t>(limit_ns, 2)) {}

void FlowMeter::arrived(std::uint64_t now_ns, std::uint64_t bytes) {
  if (total_bytes_ == 0) first_ns_ = now_ns;
  const std::uint64_t since = now_ns > first_ns_ ? now_ns - first_ns_ : 0;
  total_bytes_ += bytes;
  if (since > 2 * limit_ns_) return;
  if (since <= limit_ns_) last_ns_ = since;
  Bin& bin = bins_[std::min<std::size_t>(since * kBins / (2 * limit_ns_), kBins - 1)];
  bin = {total_bytes_, since};
}

FlowMeter::Bin FlowMeter::state_at(std::uint64_t at_ns) const {
  Bin state;
  for (const Bin& bin : bins_) {
    if (bin.bytes == 0) continue;
    if (bin.last_ns > at_ns && state.bytes > 0) break;
    state = bin;
    if (bin.last_ns > at_ns) break;
  }
  return state;
}

// Frames arrive whole, but the bytes of one came since the one before.
double FlowMeter::bytes_by(std::uint64_t since_begin_ns) const {
  const std::uint64_t at_ns = begin_ns_.value_or(first_ns_) + since_begin_ns;
  if (total_bytes_ == 0 || at_ns < first_ns_) return 0;
  const std::uint64_t since = at_ns - first_ns_;
  Bin before;
  for (const Bin& bin : bins_) {
    if (bin.bytes == 0) continue;
    if (bin.last_ns <= since) {
      before = bin;
      continue;
    }
    const double part = static_cast<double>(since - before.last_ns) /
                        static_cast<double>(bin.last_ns - before.last_ns);
    return static_cast<double>(before.bytes) + part * static_cast<double>(bin.bytes - before.bytes);
  }
  return static_cast<double>(before.bytes);
}

Sample FlowMeter::sample(bool is_cut_short) const {
  Sample sample = own_rate();
  const std::uint64_t from_ns = limit_ns_ * 2 / 5, to_ns = limit_ns_ * 9 / 10;
  const double bytes = bytes_by(to_ns) - bytes_by(from_ns);
  sample.together_kbps =
      is_cut_short ? sample.kbps
                   : static_cast<std::int64_t>(bytes * 8e6 / static_cast<double>(to_ns - from_ns));
  return sample;
}

Sample FlowMeter::own_rate() const {
  if (last_ns_ < kLeastNs) return {};
  // A flow that stopped for good, as after a loss: what came before says little, but it did come.
  if (2 * last_ns_ < limit_ns_ && total_bytes_ < kMuchBytes) {
    Sample stopped;
    stopped.kbps = static_cast<std::int64_t>(kbps(total_bytes_, limit_ns_));
    return stopped;
  }
  const Bin begin = state_at(last_ns_ * 2 / 5), middle = state_at(last_ns_ * 13 / 20),
            end = state_at(last_ns_ * 9 / 10);
  if (end.last_ns <= begin.last_ns) return {};
  Sample sample;
  sample.kbps =
      static_cast<std::int64_t>(kbps(end.bytes - begin.bytes, end.last_ns - begin.last_ns));
  if (middle.last_ns > begin.last_ns && end.last_ns > middle.last_ns) {
    const double first = kbps(middle.bytes - begin.bytes, middle.last_ns - begin.last_ns);
    const double second = kbps(end.bytes - middle.bytes, end.last_ns - middle.last_ns);
    sample.is_steady = std::abs(first - second) <= kSteady * std::max(first, second);
  }
  return sample;
}

void FlowWindow::acknowledged(std::uint64_t bytes, std::uint64_t queue_ns) {
  if (queue_ns < kQueueNs) {
    bytes_ = std::min(kMostBytes, bytes_ + bytes / 2);
  } else if (queue_ns > 2 * kQueueNs) {
    bytes_ = std::max(kLeastBytes, bytes_ - std::min(bytes_, bytes / 2));
  }
}

}  // namespace riffle::probe
