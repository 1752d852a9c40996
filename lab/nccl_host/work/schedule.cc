#include "lab/nccl_host/work/schedule.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

namespace riffle::host {
namespace {

// The least traffic worth a channel.
std::size_t min_traffic(const Layout& layout) {
  return layout.release == Release::k2_28 ? 16 << 10 : 32 << 10;
}

constexpr std::size_t kGrain = 512;  // chunks of the Simple protocol are multiples of it

constexpr std::size_t div_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

std::size_t traffic_per_byte(Function f, int ranks) {
  if (f == Function::kAllReduce) return 2;
  if (f == Function::kAllGather || f == Function::kReduceScatter)
    return static_cast<std::size_t>(ranks);
  return 1;
}

std::size_t traffic(const Collective& c, int ranks) {
  return c.count * size_of(c.type) * traffic_per_byte(c.function, ranks);
}

// NCCL sorts by size into bins of a quarter of a power of two, from 1 KiB to 1 GiB.
int size_bin(std::size_t bytes) {
  const auto units = static_cast<std::uint32_t>(std::min(bytes, std::size_t{1} << 30) >> 10);
  if (units < 4) return static_cast<int>(units);
  const int log2 = std::bit_width(units) - 1;
  return (log2 - 1) * 4 + static_cast<int>((units >> (log2 - 2)) & 3);
}

struct Task {
  Collective what;
  std::size_t traffic = 0;
  Algorithm algorithm = Algorithm::kRing;
  int channels_max = 1;
};

// As many channels as have enough to do: threads x bytes per thread each.
int channels_for(Algorithm a, std::size_t bytes, int channels) {
  const std::size_t per_channel = a == Algorithm::kCollNetChain ? 640 * 512
                                  : a == Algorithm::kTree       ? 512 * 64
                                                                : 256 * 64;
  while (channels > 1 && bytes < static_cast<std::size_t>(channels) * per_channel) --channels;
  return channels;
}

// Collectives of one function, operator and type whose sizes are within a factor of four are
// decided together, as one of their total size.
void choose_algorithms(std::vector<Task>& tasks, const Layout& layout, std::size_t group_size,
                       const Chooser& choose) {
  const int per_channel =
      static_cast<int>(div_up(group_size, static_cast<std::size_t>(layout.channels)));
  for (std::size_t begin = 0; begin < tasks.size();) {
    Collective like = tasks[begin].what;
    std::size_t end = begin + 1;
    for (; end < tasks.size() && tasks[end].traffic < 4 * tasks[begin].traffic; ++end) {
      like.count += tasks[end].what.count;
    }
    const std::size_t bytes = larger_buffer_bytes(like, layout.ranks);
    const Algorithm algorithm = choose(like, bytes, per_channel);
    for (; begin < end; ++begin) {
      tasks[begin].algorithm = algorithm;
      tasks[begin].channels_max = channels_for(algorithm, bytes, layout.channels);
    }
  }
}

// NCCL's order: bins of (function, operator, type) in the order in which they appear when
// everything is sorted by falling size, each by rising size; then ring and tree before CollNet.
std::vector<Task> ordered(std::vector<Collective> group, const Layout& layout,
                          const Chooser& choose) {
  std::vector<Task> all;
  for (Collective& c : group) {
    if (c.function == Function::kAllGather || c.function == Function::kBroadcast) {
      c.count *= size_of(c.type);  // moved as bytes
      c.type = DataType::kInt8;
    }
    all.push_back({c, traffic(c, layout.ranks)});
  }
  std::reverse(all.begin(), all.end());  // later ones come first within a bin of sizes
  std::stable_sort(all.begin(), all.end(), [](const Task& a, const Task& b) {
    return size_bin(a.traffic) > size_bin(b.traffic);
  });
  // NCCL's kernels have one operator for minimum and maximum.
  auto kernel_op = [](Op op) { return op == Op::kMin ? Op::kMax : op; };
  using Key = std::tuple<Function, Op, DataType>;
  std::vector<Key> order;
  std::map<Key, std::vector<Task>> bins;
  for (Task& t : all) {
    const Key key{t.what.function, kernel_op(t.what.op), t.what.type};
    if (bins.find(key) == bins.end()) order.push_back(key);
    bins[key].insert(bins[key].begin(), t);
  }
  std::vector<Task> point_to_point, collnet;
  for (const Key& key : order) {
    choose_algorithms(bins[key], layout, all.size(), choose);
    for (Task& t : bins[key]) {
      (t.algorithm == Algorithm::kCollNetChain ? collnet : point_to_point).push_back(t);
    }
  }
  point_to_point.insert(point_to_point.end(), collnet.begin(), collnet.end());
  return point_to_point;
}

std::size_t collnet_chunk_bytes(std::size_t bytes, int channels, const Layout& layout) {
  std::size_t chunk = std::min<std::size_t>(256 << 10, layout.buffer_bytes / kSteps);
  const auto n = static_cast<std::size_t>(channels);
  while (bytes / (n * chunk) < 64 && chunk > 131072) chunk /= 2;
  while (bytes / (n * chunk) < 8 && chunk > 65536) chunk /= 2;
  while (bytes / (n * chunk) < 1 && chunk > 32768) chunk /= 2;
  return chunk / kGrain * kGrain;
}

std::size_t traffic_per_channel(std::size_t sum, int channels, const Layout& layout) {
  if (channels == 0) return 0;
  const std::size_t share = sum / static_cast<std::size_t>(channels);
  return layout.release == Release::k2_28 ? std::max(min_traffic(layout), share)
                                          : round_up(share, 16);
}

// Hands cells (the least amount worth a channel) to channels one after another, so that all
// channels of the group carry the same traffic; a collective may start on the channel where the
// last one ended.
class CellPacker {
 public:
  CellPacker(std::size_t traffic_per_channel, int channels)
      : per_channel_(traffic_per_channel), channels_(channels) {}

  Scheduled place(const Task& t, const Layout& layout) {
    const std::size_t element = size_of(t.what.type);
    const std::size_t per_byte = traffic_per_byte(t.what.function, layout.ranks);
    const std::size_t cell_bytes = div_up(div_up(min_traffic(layout), per_byte), 16) * 16;
    const std::size_t cell_count = cell_bytes / element;
    const std::size_t cell_traffic = cell_bytes * per_byte;
    const std::size_t cells = div_up(t.what.count * element, cell_bytes);
    std::size_t middle = std::min(cells, div_up(per_channel_, cell_traffic));
    std::size_t low = channel_ + 1 == channels_
                          ? cells
                          : std::min(cells, div_up(per_channel_ - current_, cell_traffic));
    std::size_t n_middle = middle == 0 ? 0 : (cells - low) / middle;
    std::size_t high = middle == 0 ? 0 : (cells - low) % middle;
    const std::size_t wanted = (low != 0) + n_middle + (high != 0);
    if (static_cast<std::size_t>(channels_) < static_cast<std::size_t>(channel_) + wanted) {
      n_middle = static_cast<std::size_t>(channels_ - channel_ - 2);
      middle = (cells - low) / (n_middle + 1);
      high = middle + (cells - low) % (n_middle + 1);
    }
    if (high == 0 && n_middle != 0) {
      high = middle;
      --n_middle;
    }
    if (low == 0) {  // the current channel was full
      ++channel_;
      if (n_middle == 0) {
        low = std::exchange(high, 0);
      } else {
        low = middle;
        --n_middle;
      }
    }
    std::vector<std::size_t> counts{low * cell_count};
    counts.insert(counts.end(), n_middle, middle * cell_count);
    if (high != 0) counts.push_back(high * cell_count);
    counts.back() -= cells * cell_count - t.what.count;

    Scheduled s;
    s.what = t.what;
    s.algorithm = t.algorithm;
    s.first_channel = channel_;
    const Steps steps = steps_of(t.what.function, t.algorithm);
    s.chunk_bytes =
        layout.buffer_bytes / kSteps * static_cast<std::size_t>(steps.chunk) / kGrain * kGrain;
    std::size_t offset = 0;
    for (std::size_t n : counts) {
      s.parts.push_back({offset, n, s.chunk_bytes / element});
      offset += n;
    }
    if (high != 0) {
      channel_ += static_cast<int>(counts.size()) - 1;
      current_ = high * cell_traffic;
    } else if (n_middle != 0) {
      channel_ += static_cast<int>(counts.size());
      current_ = 0;
    } else {
      current_ += low * cell_traffic;
    }
    if (current_ >= per_channel_ && channel_ + 1 != channels_) {
      ++channel_;
      current_ = 0;
    }
    return s;
  }

 private:
  std::size_t per_channel_;
  int channels_;
  int channel_ = 0;
  std::size_t current_ = 0;  // traffic already on the current channel
};

}  // namespace

Steps steps_of(Function function, Algorithm algorithm) {
  if (algorithm != Algorithm::kRing) return {1, 1};
  switch (function) {
    case Function::kAllReduce:
    case Function::kAllGather:
    case Function::kReduceScatter:
      return {kSteps / 2, kSteps / 4};
    default:
      return {1, 1};
  }
}

std::size_t larger_buffer_bytes(const Collective& c, int ranks) {
  const bool spread = c.function == Function::kAllGather || c.function == Function::kReduceScatter;
  return c.count * size_of(c.type) * (spread ? static_cast<std::size_t>(ranks) : 1);
}

std::vector<Scheduled> schedule(std::vector<Collective> group, const Layout& layout,
                                const Chooser& choose) {
  const std::vector<Task> tasks = ordered(std::move(group), layout, choose);
  std::size_t traffic_sum = 0;
  int channels = 0;
  for (const Task& t : tasks) {
    if (t.algorithm == Algorithm::kCollNetChain) continue;
    traffic_sum += std::max(min_traffic(layout), t.traffic);
    channels = std::min(layout.channels, channels + t.channels_max);
  }
  CellPacker packer(traffic_per_channel(traffic_sum, channels, layout), layout.channels);
  std::vector<Scheduled> out;
  for (const Task& t : tasks) {
    if (t.algorithm != Algorithm::kCollNetChain) {
      out.push_back(packer.place(t, layout));
      continue;
    }
    Scheduled s;
    s.what = t.what;
    s.algorithm = t.algorithm;
    s.channels = t.channels_max;
    s.chunk_bytes = collnet_chunk_bytes(t.what.count * size_of(t.what.type), s.channels, layout);
    out.push_back(s);
  }
  return out;
}

}  // namespace riffle::host
