// The versions of NCCL's NET and COLLNET tables as types.
#pragma once

#include <type_traits>

#include "plugin/abi/collnet.h"
#include "plugin/abi/net.h"

namespace riffle::nccl_net {

template <class Table>
inline constexpr int kVersion = 0;
#define RIFFLE_VERSION(version)                                \
  template <>                                                  \
  inline constexpr int kVersion<abi::NetV##version> = version; \
  template <>                                                  \
  inline constexpr int kVersion<abi::CollNetV##version> = version;
RIFFLE_VERSION(5)
RIFFLE_VERSION(6)
RIFFLE_VERSION(7)
RIFFLE_VERSION(8)
RIFFLE_VERSION(9)
RIFFLE_VERSION(10)
RIFFLE_VERSION(11)
RIFFLE_VERSION(12)
#undef RIFFLE_VERSION

// Calls use.operator()<Table>() for one table after the other until one returns true.
template <class... Tables, class Use>
bool use_first(Use&& use) {
  return (use.template operator()<Tables>() || ...);
}
// NetV12, NetV11, ...
template <class Use>
bool use_newest(Use&& use) {
  using namespace abi;
  return use_first<NetV12, NetV11, NetV10, NetV9, NetV8, NetV7, NetV6, NetV5>(use);
}
// CollNetV12, CollNetV11, ...
template <class Use>
bool use_newest_collnet(Use&& use) {
  using namespace abi;
  return use_first<CollNetV12, CollNetV11, CollNetV10, CollNetV9, CollNetV8, CollNetV7, CollNetV6,
                   CollNetV5>(use);
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
