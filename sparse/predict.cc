#include "sparse/predict.h"

#include <time.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "sparse/exchange.h"
#include "sparse/residual.h"

namespace riffle::sparse {
namespace {

constexpr double kFrameBytes = 64 + kMessageHeaderBytes;  // the transport's header and ours

// Entries that a team offers to the others: between its part of the budget and all of it.
double offered(double budget, int teams) { return budget * (1.0 + 1.0 / teams) / 2; }

struct Load {  // bytes, by node or rack
  std::vector<double> out, in;
  explicit Load(std::size_t n) : out(n), in(n) {}
};

double us_of(double bytes, double kbps) { return kbps > 0 ? bytes * 8000 / kbps : 0; }

double link_us(const Fabric& f, const Load& nodes, const Load& racks) {
  double most = 0;
  for (std::size_t i = 0; i < f.nodes.size(); ++i) {
    most = std::max({most, us_of(nodes.out[i], static_cast<double>(f.nodes[i].out_kbps)),
                     us_of(nodes.in[i], static_cast<double>(f.nodes[i].in_kbps))});
  }
  for (std::size_t i = 0; i < f.racks.size(); ++i) {
    most = std::max({most, us_of(racks.out[i], static_cast<double>(f.racks[i].up_kbps)),
                     us_of(racks.in[i], static_cast<double>(f.racks[i].down_kbps))});
  }
  return most;
}

void add(const Fabric& f, int from, int to, double bytes, Load& nodes, Load& racks) {
  nodes.out[static_cast<std::size_t>(from)] += bytes;
  nodes.in[static_cast<std::size_t>(to)] += bytes;
  const int a = f.nodes[static_cast<std::size_t>(from)].rack;
  const int b = f.nodes[static_cast<std::size_t>(to)].rack;
  if (a == b) return;
  racks.out[static_cast<std::size_t>(a)] += bytes;
  racks.in[static_cast<std::size_t>(b)] += bytes;
}

// Two ways to place nodes: racks side by side, so that teams can be racks; or one node of each rack
// after the other, so that of one team's steps only those between near positions, which send least,
// leave the racks.
std::vector<std::vector<int>> places(const Fabric& fabric) {
  const auto rack = [&](int node) { return fabric.nodes[static_cast<std::size_t>(node)].rack; };
  std::vector<int> by_rack(fabric.nodes.size());
  std::iota(by_rack.begin(), by_rack.end(), 0);
  std::ranges::stable_sort(by_rack, {}, rack);
  std::vector<int> in_rack(fabric.nodes.size());  // how many of its rack come before it
  std::vector<int> seen(fabric.racks.size());
  for (const int node : by_rack) {
    in_rack[static_cast<std::size_t>(node)] = seen[static_cast<std::size_t>(rack(node))]++;
  }
  std::vector<int> in_turns = by_rack;
  std::ranges::stable_sort(in_turns, {},
                           [&](int node) { return in_rack[static_cast<std::size_t>(node)]; });
  return {by_rack, in_turns};
}

double block_bytes_of(const Layout& layout, const SparsePlan& plan, Phase phase, int position,
                      int label) {
  const int block = phase == Phase::kAcross ? layout.local_rank_of(position) : label;
  const std::uint64_t elements = layout.size_of(block);
  double entries = static_cast<double>(layout.budget_of(block));
  if (phase == Phase::kAcross && plan.across == Across::kGathered) {
    entries = offered(entries, layout.teams());
  }
  return kBlockHeaderBytes +
         static_cast<double>(block_bytes(elements, static_cast<std::uint64_t>(std::ceil(entries)),
                                         Element::kFloat32));
}

}  // namespace

SparseTime predict(const Fabric& fabric, const SparsePlan& plan, double density,
                   std::uint64_t elements, std::uint64_t chunk_elements, const Machine& machine) {
  const int n = fabric.size();
  const std::uint64_t chunks =
      std::max<std::uint64_t>(1, (elements + chunk_elements - 1) / chunk_elements);
  const Layout layout({n, plan.teams, std::max<std::uint64_t>(1, elements / chunks), density});
  std::vector<std::vector<Step>> steps;
  for (int p = 0; p < n; ++p) steps.push_back(schedule(layout, plan.across, p));

  SparseTime time;
  Load nodes(fabric.nodes.size()), racks(fabric.racks.size());
  for (std::size_t s = 0; s < steps[0].size(); ++s) {
    Load step_nodes(fabric.nodes.size()), step_racks(fabric.racks.size());
    std::int64_t latency_us = 0;
    for (int p = 0; p < n; ++p) {
      const Step& step = steps[static_cast<std::size_t>(p)][s];
      const int from = plan.node_at[static_cast<std::size_t>(p)];
      const int to = plan.node_at[static_cast<std::size_t>(step.to)];
      double bytes = kFrameBytes;
      for (const int label : step.send) {
        bytes += block_bytes_of(layout, plan, step.phase, p, label);
      }
      add(fabric, from, to, bytes, nodes, racks);
      add(fabric, from, to, bytes, step_nodes, step_racks);
      latency_us = std::max(latency_us, fabric.latency_us_between(from, to));
    }
    time.chunk_us += static_cast<double>(latency_us) + link_us(fabric, step_nodes, step_racks);
  }
  const auto count = static_cast<double>(chunks);
  const double chunk_bytes = 4 * static_cast<double>(layout.shape().elements);
  const double work_us = machine.exchange_mbps > 0 ? chunk_bytes / machine.exchange_mbps : 0;
  time.chunk_us += work_us;
  time.network_us = count * link_us(fabric, nodes, racks);
  time.processor_us = count * work_us;
  // One chunk alone has nothing to overlap with: all of it counts.
  if (chunks == 1) {
    time.total_us = time.chunk_us;
    return time;
  }
  const double in_turn_us = count * time.chunk_us / std::max(1, machine.under_way);
  time.total_us =
      std::max({time.network_us, time.processor_us, in_turn_us}) + time.chunk_us * (1 - 1 / count);
  return time;
}

SparsePlan best_plan(const Fabric& fabric, int teams, double density, std::uint64_t elements,
                     std::uint64_t chunk_elements, const Machine& machine) {
  const int n = fabric.size();
  const std::vector<std::vector<int>> all_places = places(fabric);
  SparsePlan best;
  double least_us = 0;
  for (int d = 1; d <= n; ++d) {
    if (n % d != 0 || (teams != 0 && d != teams)) continue;
    for (const Across across : {Across::kGathered, Across::kRecursive}) {
      if (across == Across::kRecursive && (d == 1 || !std::has_single_bit(unsigned(d)))) continue;
      for (const std::vector<int>& node_at : all_places) {
        const SparsePlan plan{d, across, node_at};
        const double us =
            predict(fabric, plan, density, elements, chunk_elements, machine).total_us;
        // The fewer teams the better understood: others must be worth it.
        if (!best.node_at.empty() && us > 0.95 * least_us) continue;
        best = plan;
        least_us = us;
      }
    }
  }
  return best;
}

double measure_exchange_mbps() {
  // Chunks take turns, as a job's do: by the time one comes again, others have driven its gradients
  // and residuals out of the caches.
  constexpr std::size_t kWorkers = 2, kChunks = 12;
  constexpr int kCalls = 4;
  constexpr std::uint64_t kElements = 1 << 18;
  const Layout layout({kWorkers, 1, kElements, 0.01});
  ExchangeOptions options;
  options.selection = Selection::kReuse;
  std::vector<Exchange> exchanges;
  std::vector<std::vector<ChunkState>> states(kWorkers);
  std::vector<std::vector<float>> data(kWorkers, std::vector<float>(kChunks * kElements));
  std::mt19937 random(1);
  for (std::size_t p = 0; p < kWorkers; ++p) {
    const int rank = static_cast<int>(p);
    exchanges.emplace_back(layout, options, rank);
    for (std::size_t c = 0; c < kChunks; ++c) {
      states[p].emplace_back(layout, rank, options.residual);
    }
    for (std::size_t i = 0; i < kElements; ++i) {  // a sharp peak and long tails
      const float u = static_cast<float>(random()) * 0x1p-31F - 1;
      for (std::size_t c = 0; c < kChunks; ++c) data[p][c * kElements + i] = u * u * u * u * u;
    }
  }
  const auto cpu_us = [] {
    timespec t;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
  };
  std::vector<float> result(kChunks * kElements);
  double began_us = 0;
  for (std::uint32_t call = 0; call < kCalls; ++call) {
    if (call == kCalls / 2) began_us = cpu_us();  // memory is there, thresholds are known
    for (std::size_t c = 0; c < kChunks; ++c) {
      for (std::size_t p = 0; p < kWorkers; ++p) {
        exchanges[p].begin(states[p][c], &data[p][c * kElements], Element::kFloat32, call);
      }
      while (!exchanges[0].is_done()) {
        const auto a = exchanges[0].message(), b = exchanges[1].message();
        const std::vector<std::uint8_t> first(a.begin(), a.end()), second(b.begin(), b.end());
        if (!exchanges[0].receive(second) || !exchanges[1].receive(first)) return 0;
      }
      for (Exchange& e : exchanges) e.write_result(&result[c * kElements], Element::kFloat32);
    }
  }
  constexpr int kMeasured = kCalls - kCalls / 2;
  const double bytes = 4.0 * kElements * kChunks * kWorkers * kMeasured;
  return bytes / std::max(1.0, cpu_us() - began_us);
}

}  // namespace riffle::sparse
