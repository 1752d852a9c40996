#include "plugin/tuner/tuner.h"

#include <array>

#include "plugin/abi/constants.h"

namespace riffle {
namespace {

// In order of preference at equal cost.
constexpr std::array<int, 3> kCollNetAlgorithms = {abi::kAlgoCollNetChain, abi::kAlgoCollNetDirect,
                                                   abi::kAlgoNvls};
constexpr std::array<int, 2> kNetAlgorithms = {abi::kAlgoRing, abi::kAlgoTree};

// 6 algorithms up to NCCL 2.22 and 7 from 2.23 on, the first six alike.
bool is_known_shape(const CostTable& table) {
  return table.costs != nullptr && (table.algorithms == 6 || table.algorithms == 7) &&
         table.protocols == abi::kNumProtocols;
}

bool is_available(const CostTable& table, int algorithm) {
  for (int protocol = 0; protocol < table.protocols; ++protocol) {
    if (table.at(algorithm, protocol) >= 0) return true;
  }
  return false;
}

bool prefer_collnet(const CostTable& table) {
  float* best = nullptr;
  for (const int algorithm : kCollNetAlgorithms) {
    float& cost = table.at(algorithm, abi::kProtoSimple);  // the only protocol they have
    if (cost >= 0 && (best == nullptr || cost < *best)) best = &cost;
  }
  if (best == nullptr) return false;
  *best = 0;
  return true;
}

bool avoid_collnet(const CostTable& table) {
  bool has_other = false;
  for (const int algorithm : kNetAlgorithms) has_other |= is_available(table, algorithm);
  if (!has_other) return false;
  bool changed = false;
  for (const int algorithm : kCollNetAlgorithms) {
    for (int protocol = 0; protocol < table.protocols; ++protocol) {
      float& cost = table.at(algorithm, protocol);
      if (cost < 0) continue;
      cost = abi::kCostIgnore;
      changed = true;
    }
  }
  return changed;
}

}  // namespace

Way choose_way(const TunerSettings& settings, std::size_t nodes, int function, std::size_t bytes) {
  if (nodes <= 1 || function != abi::kFuncAllReduce) return Way::kNccl;
  return settings.is_enabled && bytes >= settings.min_bytes ? Way::kGroupPlan : Way::kNet;
}

bool steer(Way way, const CostTable& table) {
  if (!is_known_shape(table)) return false;
  switch (way) {
    case Way::kNccl:
      return false;
    case Way::kGroupPlan:
      return prefer_collnet(table);
    case Way::kNet:
      return avoid_collnet(table);
  }
  return false;
}

}  // namespace riffle
