#include "topology/plan/schedules/contraction.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "topology/base/seeded_random.h"

namespace riffle {
namespace {

constexpr int kSamples = 16;  // independent runs of the sampled deviation, side by side in memory

// The groups of one partition, one after the other.
struct Averaging {
  std::vector<int> members;
  std::vector<std::size_t> ends;
};

std::vector<Averaging> averagings(const ScheduleTable& table) {
  std::vector<Averaging> all;
  for (const GroupPlan& plan : table.partitions) {
    Averaging a;
    for (const Group& group : plan.levels.front().groups) {
      a.members.insert(a.members.end(), group.members.begin(), group.members.end());
      a.ends.push_back(a.members.size());
    }
    all.push_back(std::move(a));
  }
  return all;
}

// values <- (1 - delta) values + delta W values; `columns` values per node, node by node.
void average(const Averaging& a, double delta, std::size_t columns, std::vector<double>& values) {
  std::vector<double> mean(columns);
  std::size_t begin = 0;
  for (const std::size_t end : a.ends) {
    std::fill(mean.begin(), mean.end(), 0.0);
    for (std::size_t i = begin; i < end; ++i) {
      const double* row = &values[static_cast<std::size_t>(a.members[i]) * columns];
      for (std::size_t c = 0; c < columns; ++c) mean[c] += row[c];
    }
    const double scale = delta / static_cast<double>(end - begin);
    for (std::size_t c = 0; c < columns; ++c) mean[c] *= scale;
    for (std::size_t i = begin; i < end; ++i) {
      double* row = &values[static_cast<std::size_t>(a.members[i]) * columns];
      for (std::size_t c = 0; c < columns; ++c) row[c] = (1 - delta) * row[c] + mean[c];
    }
    begin = end;
  }
}

void remove_mean(std::size_t columns, std::vector<double>& values) {
  const std::size_t nodes = values.size() / columns;
  std::vector<double> mean(columns, 0.0);
  for (std::size_t i = 0; i < nodes; ++i) {
    for (std::size_t c = 0; c < columns; ++c) mean[c] += values[i * columns + c];
  }
  for (std::size_t i = 0; i < nodes; ++i) {
    for (std::size_t c = 0; c < columns; ++c) {
      values[i * columns + c] -= mean[c] / static_cast<double>(nodes);
    }
  }
}

double norm2(const std::vector<double>& v) {
  return std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
}

// The partitions that one lane runs in a period, in their order.
using Sequence = std::vector<std::uint32_t>;

// Lanes that run the same partitions in another phase mix alike, so one stands for all.
Sequence rotated_to_least(Sequence sequence) {
  Sequence least = sequence;
  for (std::size_t i = 1; i < sequence.size(); ++i) {
    std::rotate(sequence.begin(), sequence.begin() + 1, sequence.end());
    least = std::min(least, sequence);
  }
  return least;
}

struct LaneKind {
  Sequence sequence;
  int first_lane = 0;
  int lanes = 1;
};

std::vector<LaneKind> lane_kinds(const ScheduleTable& table) {
  std::vector<LaneKind> kinds;
  std::vector<Sequence> least;
  const auto lanes = static_cast<std::size_t>(table.lanes);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    Sequence sequence;
    for (std::size_t entry = lane; entry < table.table.size(); entry += lanes) {
      sequence.push_back(table.table[entry]);
    }
    Sequence key = rotated_to_least(sequence);
    const auto known = std::find(least.begin(), least.end(), key);
    if (known != least.end()) {
      ++kinds[static_cast<std::size_t>(known - least.begin())].lanes;
      continue;
    }
    least.push_back(std::move(key));
    kinds.push_back({std::move(sequence), static_cast<int>(lane), 1});
  }
  return kinds;
}

class Lane {
 public:
  Lane(const std::vector<Averaging>& all, const Sequence& sequence, int nodes)
      : all_(all), sequence_(sequence), nodes_(static_cast<std::size_t>(nodes)) {}

  bool is_connected() const {
    std::vector<int> root(nodes_);
    std::iota(root.begin(), root.end(), 0);
    const auto find = [&](int i) {
      while (root[static_cast<std::size_t>(i)] != i) {
        int& up = root[static_cast<std::size_t>(i)];
        up = root[static_cast<std::size_t>(up)];
        i = up;
      }
      return i;
    };
    for (const std::uint32_t index : sequence_) {
      const Averaging& a = all_[index];
      std::size_t begin = 0;
      for (const std::size_t end : a.ends) {
        for (std::size_t i = begin + 1; i < end; ++i) {
          root[static_cast<std::size_t>(find(a.members[i]))] = find(a.members[begin]);
        }
        begin = end;
      }
    }
    for (std::size_t i = 1; i < nodes_; ++i) {
      if (find(static_cast<int>(i)) != find(0)) return false;
    }
    return true;
  }

  // Of the variance, per step: how a difference that nothing feeds dies away.
  double contraction(double delta) const {
    constexpr std::size_t kLeastSteps = 400;
    const std::size_t periods = std::max<std::size_t>(8, kLeastSteps / sequence_.size());
    std::vector<double> v = random_vector();
    double decay = 0;
    for (std::size_t p = 0; p < 2 * periods; ++p) {
      for (const std::uint32_t index : sequence_) {
        average(all_[index], delta, 1, v);
        remove_mean(1, v);
        const double left = norm2(v);
        if (left < kNothing) return 0;
        if (p >= periods) decay += std::log(left);
        for (double& x : v) x /= std::sqrt(left);
      }
    }
    return std::exp(decay / static_cast<double>(periods * sequence_.size()));
  }

  // Largest singular value of the period's product on the differences, squared: power iteration.
  double norm(double delta) const {
    constexpr int kIterations = 400;
    std::vector<double> v = random_vector();
    double before = 0, now = 0;
    for (int i = 0; i < kIterations; ++i) {
      for (const std::uint32_t index : sequence_) average(all_[index], delta, 1, v);
      remove_mean(1, v);
      now = norm2(v);
      if (now < kNothing) return 0;
      for (auto it = sequence_.rbegin(); it != sequence_.rend(); ++it) {
        average(all_[*it], delta, 1, v);
      }
      remove_mean(1, v);
      const double length = std::sqrt(norm2(v));
      if (length == 0) return 0;
      for (double& x : v) x /= length;
      // Only values close to 1 decide anything.
      if (std::abs(now - before) < (now < 0.9 ? 1e-3 : 1e-8) * now) break;
      before = now;
    }
    return now;
  }

  // Stationary E|y_i - mean|^2 of every node, averaged over the period, by its covariance.
  std::vector<double> deviation(const MixingRule& rule, double contraction) const {
    std::vector<double> covariance(nodes_ * nodes_, 0.0);
    std::vector<double> of_node(nodes_);
    const double shrink =
        std::min(1 - 1e-6, std::pow(contraction, static_cast<double>(sequence_.size())));
    double before = 0;
    constexpr int kMostPeriods = 3000;
    constexpr double kSettled = 1e-4;
    for (int period = 0; period < kMostPeriods; ++period) {
      std::fill(of_node.begin(), of_node.end(), 0.0);
      for (const std::uint32_t index : sequence_) {
        if (rule.current) add_noise(rule.steps, covariance);
        average(all_[index], rule.delta, nodes_, covariance);
        transpose(covariance);
        average(all_[index], rule.delta, nodes_, covariance);
        if (!rule.current) add_noise(rule.steps * rule.kept * rule.kept, covariance);
        for (std::size_t i = 0; i < nodes_; ++i) of_node[i] += covariance[i * nodes_ + i];
      }
      const double sum = std::accumulate(of_node.begin(), of_node.end(), 0.0);
      if (period > 0 && (sum - before) * shrink / (1 - shrink) <= kSettled * sum) break;
      before = sum;
      if (sum > kHopeless * rule.steps * static_cast<double>(nodes_ * sequence_.size())) break;
    }
    for (double& x : of_node) x /= static_cast<double>(sequence_.size());
    return of_node;
  }

  // The same from random gradients, for many nodes.
  std::vector<double> sampled_deviation(const MixingRule& rule, double contraction) const {
    constexpr std::size_t kColumns = kSamples;
    constexpr double kForgotten = 1e-3;
    constexpr std::size_t kMostSteps = 4000;
    constexpr std::size_t kDraws = std::size_t{1} << 20;
    const double decay = -std::log(std::clamp(contraction, 1e-9, 1 - 1e-9));
    const auto warm = static_cast<std::size_t>(-std::log(kForgotten) / decay) + sequence_.size();
    const std::size_t counted =
        std::max<std::size_t>(kDraws / (nodes_ * kColumns), 8 + 2 * sequence_.size());
    const std::size_t periods =
        std::min(warm + counted, kMostSteps) / sequence_.size() + 1;  // whole ones
    SeededRandom random(0x5eed);
    std::vector<double> values(nodes_ * kColumns, 0.0), of_node(nodes_, 0.0);
    const double size = std::sqrt(rule.steps) * (rule.current ? 1 : rule.kept);
    std::size_t steps = 0;
    for (std::size_t p = 0; p < periods; ++p) {
      for (const std::uint32_t index : sequence_) {
        if (!rule.current) average(all_[index], rule.delta, kColumns, values);
        add_gradients(random, size, values);
        if (rule.current) average(all_[index], rule.delta, kColumns, values);
        remove_mean(kColumns, values);
        if (p * sequence_.size() < std::min(warm, kMostSteps / 2)) continue;
        ++steps;
        for (std::size_t i = 0; i < values.size(); ++i) {
          of_node[i / kColumns] += values[i] * values[i];
        }
      }
    }
    for (double& x : of_node) x /= static_cast<double>(steps * kColumns);
    return of_node;
  }

 private:
  static constexpr double kHopeless = 30;  // a deviation that grows beyond is not followed further
  static constexpr double kNothing = 1e-20;  // of 1: what rounding leaves of an exact average

  std::vector<double> random_vector() const {
    SeededRandom random(0xc0ffee);
    std::vector<double> v(nodes_);
    for (double& x : v) x = static_cast<double>(random.next() >> 11) * 0x1p-53 - 0.5;
    remove_mean(1, v);
    const double length = std::sqrt(norm2(v));
    for (double& x : v) x /= length;
    return v;
  }

  // Gradients of unit variance; their mean moves all nodes alike and is left out.
  void add_noise(double steps, std::vector<double>& covariance) const {
    const double mean = steps / static_cast<double>(nodes_);
    for (double& x : covariance) x -= mean;
    for (std::size_t i = 0; i < nodes_; ++i) covariance[i * nodes_ + i] += steps;
  }

  void transpose(std::vector<double>& matrix) const {
    for (std::size_t i = 0; i < nodes_; ++i) {
      for (std::size_t j = 0; j < i; ++j) std::swap(matrix[i * nodes_ + j], matrix[j * nodes_ + i]);
    }
  }

  static void add_gradients(SeededRandom& random, double size, std::vector<double>& values) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      bits = i % 64 == 0 ? random.next() : bits >> 1;
      values[i] += (bits & 1) != 0 ? size : -size;
    }
  }

  const std::vector<Averaging>& all_;
  const Sequence& sequence_;
  std::size_t nodes_;
};

}  // namespace

Mixing mixing_of(const ScheduleTable& table, const MixingRule& rule) {
  const std::vector<Averaging> all = averagings(table);
  Mixing mixing{true, 0, 0, 0, 0, table.nodes <= kExactNodes};
  for (const LaneKind& kind : lane_kinds(table)) {
    const Lane lane(all, kind.sequence, table.nodes);
    if (!lane.is_connected()) return Mixing{};
    const double contraction = lane.contraction(rule.delta);
    const std::vector<double> deviation = mixing.exact ? lane.deviation(rule, contraction)
                                                       : lane.sampled_deviation(rule, contraction);
    mixing.contraction = std::max(mixing.contraction, contraction);
    mixing.norm = std::max(mixing.norm, lane.norm(rule.delta));
    mixing.deviation += std::accumulate(deviation.begin(), deviation.end(), 0.0) / table.nodes *
                        kind.lanes / table.lanes;
    mixing.worst_deviation =
        std::max(mixing.worst_deviation, *std::max_element(deviation.begin(), deviation.end()));
  }
  return mixing;
}

Status verify_contraction(const ScheduleTable& table) {
  const std::vector<Averaging> all = averagings(table);
  for (const LaneKind& kind : lane_kinds(table)) {
    const std::string where =
        "schedule " + table.name + ", lane " + std::to_string(kind.first_lane) + ": ";
    const Lane lane(all, kind.sequence, table.nodes);
    if (!lane.is_connected()) {
      return invalid_argument(where + "the groups of its " + std::to_string(table.steps) +
                              " steps never join all " + std::to_string(table.nodes) + " nodes");
    }
    const double norm = lane.norm(1);
    if (norm > 1 - kLeastContraction) {
      return invalid_argument(where + "a period leaves " + std::to_string(norm) +
                              " of the variance between nodes, accepted at most " +
                              std::to_string(1 - kLeastContraction));
    }
  }
  return Status::ok();
}

double grid_deviation(const std::vector<int>& dimensions) {
  const std::size_t d = dimensions.size();
  const double nodes =
      std::accumulate(dimensions.begin(), dimensions.end(), 1.0, std::multiplies<>());
  double sum = 0;
  for (std::size_t phase = 0; phase < d; ++phase) {
    double reach = 1;  // nodes whose gradient of k steps ago is in the mean
    for (std::size_t k = 0; k + 1 < d; ++k) {
      reach *= dimensions[(phase + d - k) % d];
      sum += 1 / reach - 1 / nodes;
    }
  }
  return sum / static_cast<double>(d);
}

double random_groups_deviation(int nodes, int groups) {
  const double q = (groups - 1.0) / (nodes - 1.0);
  return (1 - 1.0 / nodes) * q / (1 - q);
}

double delta_deviation(int nodes, double delta, int round_steps) {
  return round_steps / (delta * (2 - delta)) * (1 - 1.0 / nodes);
}

double fir_deviation(int nodes, int delay_steps) { return delay_steps * (1 - 1.0 / nodes); }

double delta_limit(int overlap) {
  return 2 * std::sin(std::numbers::pi / (2 * (2.0 * overlap + 1)));
}

}  // namespace riffle
