// All workers of a published scheme in one thread, their messages in an order that a seed shuffles;
// and what their results are held against: sums computed directly, and nothing lost.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/sparse/scheme.h"
#include "sparse/select.h"

namespace riffle::bench {

using Vector = std::vector<float>;
using Vectors = std::vector<Vector>;

// Heavy tails; workers agree in part about where.
inline Vectors random_gradients(std::mt19937& random, int workers, std::size_t elements) {
  std::normal_distribution<float> normal;
  Vector scale(elements);
  for (float& s : scale) s = std::exp(1.5F * normal(random));
  Vectors all;
  for (int p = 0; p < workers; ++p) {
    Vector g(elements);
    for (std::size_t i = 0; i < elements; ++i) g[i] = scale[i] * normal(random);
    all.push_back(std::move(g));
  }
  return all;
}

class Job {
 public:
  Job(const std::string& name, const SchemeShape& shape, unsigned seed = 1)
      : shape_(shape), random_(seed) {
    for (int r = 0; r < shape.workers; ++r) {
      auto scheme = make_scheme(name, shape, r);
      EXPECT_TRUE(scheme) << scheme.status().message();
      schemes.push_back(std::move(*scheme));
    }
  }

  // One call; what everybody got, which must be the same bits.
  Vector all_reduce(const Vectors& gradients) {
    for (std::size_t r = 0; r < schemes.size(); ++r) {
      schemes[r]->prepare(gradients[r]);
      schemes[r]->begin(gradients[r]);
    }
    deliver_all();
    Vector first(shape_.elements), other(shape_.elements);
    schemes[0]->write_result(first);
    for (const auto& scheme : schemes) {
      scheme->write_result(other);
      EXPECT_EQ(std::memcmp(first.data(), other.data(), first.size() * sizeof(float)), 0);
    }
    return first;
  }

  std::vector<std::unique_ptr<Scheme>> schemes;

 private:
  using Bytes = std::vector<std::uint8_t>;

  void send(int rank) {
    Scheme& scheme = *schemes[static_cast<std::size_t>(rank)];
    if (scheme.is_done()) return;
    for (std::size_t i = 0; i < scheme.round().to.size(); ++i) {
      const auto bytes = scheme.message(i);
      wires_[{rank, scheme.round().to[i]}].emplace_back(bytes.begin(), bytes.end());
    }
  }
  bool advance(int rank) {
    Scheme& scheme = *schemes[static_cast<std::size_t>(rank)];
    if (scheme.is_done()) return false;
    const std::vector<int> from = scheme.round().from;
    for (const int f : from) {
      if (wires_[{f, rank}].empty()) return false;
    }
    std::vector<Bytes> messages;
    for (const int f : from) {
      messages.push_back(std::move(wires_[{f, rank}].front()));
      wires_[{f, rank}].pop_front();
    }
    const std::vector<std::span<const std::uint8_t>> spans(messages.begin(), messages.end());
    const bool is_ahead = random_() % 2 == 0 && scheme.go_ahead();
    if (is_ahead) send(rank);
    const Status status = scheme.take(spans);
    EXPECT_TRUE(status) << status.message();
    if (!status) return false;
    if (!is_ahead) send(rank);
    return true;
  }
  void deliver_all() {
    std::vector<int> ranks;
    for (int r = 0; r < shape_.workers; ++r) {
      ranks.push_back(r);
      send(r);
    }
    for (bool moved = true; moved;) {
      moved = false;
      std::ranges::shuffle(ranks, random_);
      for (const int r : ranks) moved |= advance(r);
    }
    for (const auto& scheme : schemes) ASSERT_TRUE(scheme->is_done()) << "deadlock";
    for (const auto& [ends, wire] : wires_) EXPECT_TRUE(wire.empty()) << "nobody wanted a message";
  }

  SchemeShape shape_;
  std::mt19937 random_;
  std::map<std::pair<int, int>, std::deque<Bytes>> wires_;
};

inline Vector top_k(const Vector& from, std::uint64_t k) {
  sparse::Selector selector;
  sparse::Entries kept;
  selector.top_k(from.data(), sparse::Element::kFloat32, from.size(), k, kept);
  Vector out(from.size());
  for (std::size_t i = 0; i < kept.count(); ++i) out[kept.indices()[i]] = kept.values()[i];
  return out;
}

inline Vector sum_of(const Vectors& all) {
  Vector sum(all[0].size());
  for (const Vector& v : all) {
    for (std::size_t i = 0; i < v.size(); ++i) sum[i] += v[i];
  }
  return sum;
}

inline Vectors selected(const Vectors& gradients, std::uint64_t k) {
  Vectors all;
  for (const Vector& g : gradients) all.push_back(top_k(g, k));
  return all;
}

inline std::uint64_t count_of(const Vector& v) {
  return static_cast<std::uint64_t>(std::ranges::count_if(v, [](float x) { return x != 0; }));
}

// Up to the rounding of sums in another order, which may also swap the least of what is kept.
inline void expect_same_sum(const Vector& is, const Vector& expected) {
  std::size_t different = 0;
  for (std::size_t i = 0; i < is.size(); ++i) {
    different += std::fabs(is[i] - expected[i]) > 1e-4F * std::fabs(expected[i]) ? 1 : 0;
  }
  EXPECT_LE(different, 2U);
}

inline void expect_conserved(const Job& job, const Vectors& gradients, const Vector& result) {
  std::vector<double> left(result.begin(), result.end()), size(result.size());
  Vector mine(result.size());
  for (std::size_t r = 0; r < gradients.size(); ++r) {
    job.schemes[r]->write_undelivered(mine);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      left[i] += static_cast<double>(mine[i]) - static_cast<double>(gradients[r][i]);
      size[i] += std::fabs(static_cast<double>(gradients[r][i]));
    }
  }
  for (std::size_t i = 0; i < left.size(); ++i) {
    ASSERT_LE(std::fabs(left[i]), 1e-5 * size[i]) << "element " << i;
  }
}

inline SchemeShape shape_of(int workers, std::uint64_t elements = 12000) {
  return {.workers = workers, .elements = elements, .density = 0.01};
}

}  // namespace riffle::bench
