#include "lab/nccl_host/work/cost_model.h"

#include <array>
#include <bit>

namespace riffle::host {
namespace {

constexpr int kSimple = 2;
// Latencies in microseconds of the Simple protocol: software of ring and tree, and one network hop.
constexpr double kBaseUs = 8.4;
constexpr double kHopUs = 14.0;
constexpr double kRingPlateau = 1.4;  // ring all-reduce from 64 bytes per channel and rank on

// What a tree reaches of its bandwidth at 64 bytes x 2^i.
constexpr std::array<double, 23> kTreeShare = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                               .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};

double time_us(double latency_us, double gbs, std::size_t bytes) {
  return latency_us + static_cast<double>(bytes) / (1000 * gbs);
}

int log2_floor(std::size_t x) { return x == 0 ? 0 : std::bit_width(x) - 1; }

double ring_us(const CostModel& m, Function f, std::size_t bytes) {
  const int n = m.ranks;
  const bool rooted = f == Function::kBroadcast || f == Function::kReduce;
  const int hops = rooted ? n : f == Function::kAllReduce ? 2 * (n - 1) : n - 1;
  double latency = kBaseUs + (rooted ? kHopUs : hops * kHopUs);
  const auto shares = static_cast<std::size_t>(m.channels * n);
  if (f == Function::kAllReduce && bytes / shares >= 64) latency *= kRingPlateau;
  return time_us(latency, m.network_gbs * n / hops, bytes);
}

double tree_us(const CostModel& m, std::size_t bytes) {
  double gbs = m.network_gbs * .92 * .85 * .5;
  const auto size = static_cast<std::size_t>(log2_floor(bytes >> 6));
  if (size < kTreeShare.size()) gbs *= kTreeShare[size];
  return time_us(kBaseUs + 2 * log2_floor(static_cast<std::size_t>(m.ranks)) * kHopUs, gbs, bytes);
}

}  // namespace

void predict(const CostModel& model, Function function, std::size_t bytes,
             float (*table)[kProtocols]) {
  for (int a = 0; a < kAlgorithms; ++a) {
    for (int p = 0; p < kProtocols; ++p) table[a][p] = -1;
  }
  auto entry = [&](Algorithm a) -> float& { return table[static_cast<int>(a)][kSimple]; };
  entry(Algorithm::kRing) = static_cast<float>(ring_us(model, function, bytes));
  if (function != Function::kAllReduce) return;
  entry(Algorithm::kTree) = static_cast<float>(tree_us(model, bytes));
  if (model.collnet) {
    entry(Algorithm::kCollNetChain) = static_cast<float>(time_us(kHopUs, model.network_gbs, bytes));
  }
}

Algorithm cheapest(const float (*table)[kProtocols]) {
  int best = -1;
  for (int a = 0; a < kAlgorithms; ++a) {
    const float t = table[a][kSimple];
    if (t >= 0 && (best < 0 || t < table[best][kSimple])) best = a;
  }
  return best < 0 ? Algorithm::kRing : static_cast<Algorithm>(best);
}

double network_rate_gbs(int speed_mbps) {
  constexpr std::array<double, 19> kRates = {48, 30, 28, 24, 20, 18,  15,  12,   10,  9,
                                             7,  6,  5,  4,  3,  2.4, 1.2, 0.24, 0.12};
  for (double rate : kRates) {
    if (rate <= speed_mbps / 8000.0) return rate;
  }
  return kRates.back();
}

}  // namespace riffle::host
