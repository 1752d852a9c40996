// The versions of NCCL's NET table as types.
#pragma once

#include <type_traits>

#include "plugin/abi/net.h"

namespace riffle::nccl_net {

template <class Table>
inline constexpr int kVersion = 0;
template <>
inline constexpr int kVersion<abi::NetV5> = 5;
template <>
inline constexpr int kVersion<abi::NetV6> = 6;
template <>
inline constexpr int kVersion<abi::NetV7> = 7;
template <>
inline constexpr int kVersion<abi::NetV8> = 8;
template <>
inline constexpr int kVersion<abi::NetV9> = 9;
template <>
inline constexpr int kVersion<abi::NetV10> = 10;
template <>
inline constexpr int kVersion<abi::NetV11> = 11;
template <>
inline constexpr int kVersion<abi::NetV12> = 12;

// Calls use.operator()<Table>() for NetV12, NetV11, ... until one returns true.
template <class Use>
bool use_newest(Use&& use) {
  using namespace abi;
  return use.template operator()<NetV12>() || use.template operator()<NetV11>() ||
         use.template operator()<NetV10>() || use.template operator()<NetV9>() ||
         use.template operator()<NetV8>() || use.template operator()<NetV7>() ||
         use.template operator()<NetV6>() || use.template operator()<NetV5>();
}

// The property record of a table's version.
template <class Function>
struct SecondArgument;
template <class Record>
struct SecondArgument<abi::NcclResult (*)(int, Record*)> {
  using Type = Record;
};
template <class Table>
using PropertiesOf = typename SecondArgument<decltype(Table::getProperties)>::Type;

}  // namespace riffle::nccl_net
