#include "lab/nccl_host/work/message_cut.h"

#include <algorithm>
#include <bit>

namespace riffle::host {

MessageCut cut_message(std::size_t bytes, const Layout& layout) {
  MessageCut cut;
  cut.chunk_bytes = kMessageStepBytes;
  if (bytes < kMessageStepBytes)
    cut.chunk_bytes /= 4;
  else if (bytes < 8 * kMessageStepBytes)
    cut.chunk_bytes /= 2;
  // 2.28 starts on one channel and doubles while a part is more than a step; 2.30 stays on one.
  const int channels = layout.release == Release::k2_28 ? message_channels(layout.channels) : 1;
  std::size_t part = bytes;
  while (part > kMessageStepBytes && cut.channels <= channels / 2) {
    cut.channels *= 2;
    const auto n = static_cast<std::size_t>(cut.channels);
    part = (bytes + n - 1) / n;
  }
  const auto n = static_cast<std::size_t>(cut.channels);
  cut.part_bytes = round_up((bytes + n - 1) / n, 4096);
  cut.capacity_bytes = layout.release == Release::k2_28
                           ? std::min({bytes, cut.part_bytes, cut.chunk_bytes})
                           : kMessageStepBytes;
  return cut;
}

int message_channels(int channels) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(channels)));
}

// NCCL serves distances in the order of triangular numbers modulo a power of two, and starts round
// r at the channel whose bits are those of r reversed, so that rounds in flight spread over
// channels.
int message_channel(int distance, const Layout& layout) {
  const auto size = static_cast<int>(std::bit_ceil(static_cast<unsigned>(layout.ranks)));
  int round = 0;
  for (int i = 0, d = 0; d != distance; ++i) {
    if (d < layout.ranks) ++round;
    d = (d + i + 1) & (size - 1);
  }
  const int channels = message_channels(layout.channels);
  int base = 0;
  for (int bit = 1; bit < channels; bit <<= 1, round >>= 1) base = base << 1 | (round & 1);
  return base;
}

}  // namespace riffle::host
