// All workers of a sparse all-reduce in one process: messages are handed over step by step, in an
// order that a seed shuffles.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sparse/exchange.h"

namespace riffle::sparse::test {

using Vectors = std::vector<std::vector<float>>;  // by worker

class Job {
 public:
  Job(const Shape& shape, const ExchangeOptions& options, unsigned seed = 1)
      : layout(shape), random(seed) {
    for (int p = 0; p < shape.workers; ++p) {
      exchanges.emplace_back(layout, options, p);
      states.emplace_back(layout, p, options.residual);
    }
  }

  // One call; returns what every worker got.
  Vectors all_reduce(const Vectors& gradients) {
    ++sequence;
    for (std::size_t p = 0; p < exchanges.size(); ++p) {
      exchanges[p].begin(states[p], gradients[p].data(), Element::kFloat32, sequence);
    }
    deliver_all();
    Vectors results;
    for (const Exchange& exchange : exchanges) {
      results.emplace_back(layout.shape().elements);
      exchange.write_result(results.back().data(), Element::kFloat32);
    }
    return results;
  }

  Vectors residuals() const {
    Vectors all;
    for (const ChunkState& state : states) all.push_back(state.residual);
    return all;
  }

  Layout layout;
  std::vector<Exchange> exchanges;
  std::vector<ChunkState> states;
  std::uint32_t sequence = 0;

 private:
  // A worker goes on as soon as its own message has come, whatever the others do: some run ahead.
  void deliver_all() {
    std::map<std::pair<int, int>, std::vector<std::vector<std::uint8_t>>> wires;
    const auto send = [&](int p) {
      const auto bytes = exchanges[p].message();
      wires[{p, exchanges[p].to()}].emplace_back(bytes.begin(), bytes.end());
    };
    std::vector<int> waiting;
    for (int p = 0; p < static_cast<int>(exchanges.size()); ++p) {
      if (exchanges[p].is_done()) continue;
      send(p);
      waiting.push_back(p);
    }
    while (!waiting.empty()) {
      const std::size_t start = random() % waiting.size();
      bool moved = false;
      for (std::size_t k = 0; k < waiting.size() && !moved; ++k) {
        const std::size_t i = (start + k) % waiting.size();
        const int p = waiting[i];
        auto& wire = wires[{exchanges[p].from(), p}];
        if (wire.empty()) continue;
        moved = true;
        const std::vector<std::uint8_t> bytes = std::move(wire.front());
        wire.erase(wire.begin());
        const Status status = exchanges[p].receive(bytes);
        if (!status) throw std::runtime_error(status.message());
        if (exchanges[p].is_done()) {
          waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
          send(p);
        }
      }
      if (!moved) throw std::runtime_error("deadlock");
    }
    for (const auto& [ends, wire] : wires) {
      if (!wire.empty()) throw std::runtime_error("a message that nobody wanted");
    }
  }

  std::mt19937 random;
};

// Most elements small, some large, like gradients.
inline Vectors random_gradients(std::mt19937& random, int workers, std::size_t elements) {
  std::normal_distribution<float> normal;
  Vectors all;
  for (int p = 0; p < workers; ++p) {
    std::vector<float> g(elements);
    for (float& x : g) {
      const float n = normal(random);
      x = n * n * n;
    }
    all.push_back(std::move(g));
  }
  return all;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline void expect_identical(const Vectors& results) {
  for (const auto& result : results) EXPECT_TRUE(same_bits(result, results[0]));
}

// sum of residuals + result = sum of (gradient + old residual), within 2P 2^-24 sum(|g| + |e|).
// Returns the largest error as a part of what is allowed.
inline double conservation_error(const Vectors& gradients, const Vectors& before,
                                 const Vectors& after, const std::vector<float>& result) {
  double worst = 0;
  for (std::size_t j = 0; j < result.size(); ++j) {
    double error = result[j], size = 0;
    for (std::size_t p = 0; p < gradients.size(); ++p) {
      error += double{after[p][j]} - double{gradients[p][j]} - double{before[p][j]};
      size += std::fabs(gradients[p][j]) + std::fabs(before[p][j]);
    }
    const double allowed = 2.0 * static_cast<double>(gradients.size()) * 0x1p-24 * size;
    if (error != 0) worst = std::max(worst, std::fabs(error) / allowed);
  }
  return worst;
}

}  // namespace riffle::sparse::test
