#include "topology/plan/shares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace riffle {

std::vector<double> even_weights(std::size_t n) {
  return std::vector<double>(n, 1.0 / static_cast<double>(n));
}

std::vector<double> normalized(std::vector<double> weights, double least_share) {
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  RIFFLE_CHECK(sum > 0, "no member owns a part of the buffer");
  const double least = sum * least_share / static_cast<double>(weights.size());
  for (double& w : weights) {
    if (w < least) w = 0;
  }
  sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& w : weights) w /= sum;
  return weights;
}

std::vector<double> direct_weights(std::span<const double> rates) {
  const std::size_t n = rates.size();
  if (n <= 2) return even_weights(n);
  const double sum = std::accumulate(rates.begin(), rates.end(), 0.0);
  // In units of the buffer over kbit/s. The first term alone lets the weights sum to more than 1 if
  // one node is very slow; scaling them down then unloads the others.
  const double t = std::max(1 / *std::min_element(rates.begin(), rates.end()),
                            2 * static_cast<double>(n - 1) / sum);
  std::vector<double> weights;
  for (double b : rates) weights.push_back(std::max(0.0, t * b - 1));
  return normalized(std::move(weights));
}

std::vector<double> few_owners_weights(std::span<const double> rates) {
  constexpr double kUsed =
      0.6;  // of the time an owner has: fuller links would have to be served in turn
  const std::size_t n = rates.size();
  if (n <= 2) return even_weights(n);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return rates[a] > rates[b]; });
  const double t = kUsed / rates[order.back()];
  std::vector<double> weights(n, 0.0);
  double sum = 0;
  for (const std::size_t i : order) {
    weights[i] = std::max(0.0, t * rates[i] - 1);
    sum += weights[i];
    if (sum >= static_cast<double>(n - 2)) return normalized(std::move(weights));
  }
  return direct_weights(rates);
}

std::vector<Share> cuts_of(std::span<const double> weights, Share begin, Share end, Share grain) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double span = end - begin;
  std::vector<Share> cuts{begin};
  double sum = 0;
  for (double w : weights) {
    sum += w;
    const auto steps = static_cast<Share>(std::llround(sum / total * span / grain));
    cuts.push_back(sum >= total ? end : std::min(begin + steps * grain, end));
  }
  return cuts;
}

}  // namespace riffle
