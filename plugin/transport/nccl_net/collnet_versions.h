// The versions of NCCL's COLLNET table as types.
#pragma once

#include "plugin/abi/collnet.h"

namespace riffle::nccl_net {

template <class Table>
inline constexpr int kCollNetVersion = 0;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV5> = 5;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV6> = 6;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV7> = 7;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV8> = 8;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV9> = 9;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV10> = 10;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV11> = 11;
template <>
inline constexpr int kCollNetVersion<abi::CollNetV12> = 12;

// Calls use.operator()<Table>() for CollNetV12, CollNetV11, ... until one returns true.
template <class Use>
bool use_newest_collnet(Use&& use) {
  using namespace abi;
  return use.template operator()<CollNetV12>() || use.template operator()<CollNetV11>() ||
         use.template operator()<CollNetV10>() || use.template operator()<CollNetV9>() ||
         use.template operator()<CollNetV8>() || use.template operator()<CollNetV7>() ||
         use.template operator()<CollNetV6>() || use.template operator()<CollNetV5>();
}

}  // namespace riffle::nccl_net
