#include "lab/simulation/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace riffle::sim {
namespace {

std::uint64_t mix(std::uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Calls f with a value of the type.
template <class F>
auto with_type(DataType type, F f) {
  switch (type) {
    case DataType::kInt32:
      return f(std::int32_t{});
    case DataType::kUint8:
      return f(std::uint8_t{});
    case DataType::kFloat64:
      return f(double{});
    default:
      return f(float{});
  }
}

template <class T>
T as(double value) {
  return static_cast<T>(static_cast<std::int64_t>(value));  // integers wrap around
}
template <>
float as(double value) {
  return static_cast<float>(value);
}
template <>
double as(double value) {
  return value;
}

}  // namespace

Workload::Workload(const Scenario& scenario)
    : scenario_(scenario), references_(scenario.calls.size()) {}

double Workload::value(std::size_t call, int rank, std::uint64_t element) const {
  const std::uint64_t h =
      mix(scenario_.seed ^ mix(call << 40 | element) ^ static_cast<std::uint64_t>(rank) << 20);
  if (!scenario_.calls[call].is_rounded) return static_cast<double>(h % 17);
  return static_cast<double>(static_cast<float>(static_cast<std::int64_t>(h) >> 40) / 1e6F);
}

void Workload::fill(std::size_t call, int rank, std::byte* to) const {
  const Call& c = scenario_.calls[call];
  with_type(c.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::uint64_t i = 0; i < c.count; ++i) {
      const T v = as<T>(value(call, rank, i));
      std::memcpy(to + i * sizeof(T), &v, sizeof v);
    }
  });
}

// What the nodes of one side add up to.
void Workload::make(std::size_t call, const std::vector<int>& side) {
  Reference& ref = references_[call];
  const Call& c = scenario_.calls[call];
  ref.sum.assign(c.count, 0);
  ref.magnitude.assign(c.is_rounded ? c.count : 0, 0);
  for (const int rank : side) {
    for (std::uint64_t i = 0; i < c.count; ++i) {
      const double v = value(call, rank, i);
      ref.sum[i] += v;
      if (c.is_rounded) ref.magnitude[i] += std::abs(v);
    }
  }
  ref.is_scaled =
      static_cast<int>(side.size()) < scenario_.size() && scenario_.session.survivors.rescales;
  if (!ref.is_scaled) return;
  const double factor = static_cast<double>(scenario_.size()) / static_cast<double>(side.size());
  for (double& v : ref.sum) v *= factor;
  for (double& v : ref.magnitude) v *= factor;
}

std::string Workload::check(std::size_t call, int rank, const std::byte* result,
                            const std::vector<std::vector<int>>& sides) {
  const Call& c = scenario_.calls[call];
  Reference& ref = references_[call];
  const std::string who = "node " + std::to_string(rank) + ", call " + std::to_string(call);
  if (ref.first >= 0) {
    const std::size_t bytes = ref.bits.size();
    if (std::equal(result, result + bytes, ref.bits.begin())) return "";
    return who + ": other bits than node " + std::to_string(ref.first) + " has";
  }
  ref.first = rank;
  ref.bits.assign(result, result + c.count * size_of(c.type));
  std::vector<int> all(scenario_.size());
  std::iota(all.begin(), all.end(), 0);
  make(call, all);
  const std::string problem = compare(call, result);
  if (problem.empty()) return "";
  for (const std::vector<int>& side : sides) {
    make(call, side);
    if (compare(call, result).empty()) return "";
  }
  return who + problem;
}

std::string Workload::compare(std::size_t call, const std::byte* result) const {
  const Call& c = scenario_.calls[call];
  const Reference& ref = references_[call];
  return with_type(c.type, [&](auto kind) -> std::string {
    using T = decltype(kind);
    constexpr double kRounding = std::numeric_limits<float>::epsilon();
    for (std::uint64_t i = 0; i < c.count; ++i) {
      T got;
      std::memcpy(&got, result + i * sizeof(T), sizeof got);
      // At most one rounding per node, each of half a unit in the last place.
      double allowed = c.is_rounded ? ref.magnitude[i] * scenario_.size() * kRounding : 0;
      if (ref.is_scaled) allowed += std::abs(ref.sum[i]) * kRounding;
      const double error =
          std::abs(static_cast<double>(got) - static_cast<double>(as<T>(ref.sum[i])));
      if (error <= allowed) continue;
      return ": element " + std::to_string(i) + " of " + std::to_string(c.count) + " is " +
             std::to_string(static_cast<double>(got)) + ", the sum is " +
             std::to_string(ref.sum[i]);
    }
    return "";
  });
}

}  // namespace riffle::sim
