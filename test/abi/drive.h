// Calls the tables of all versions in one way: each function below picks the call that the
// version's parameter list allows and leaves out what the version does not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "test/abi/fake_plugin.h"

namespace riffle::drive {

inline constexpr std::uint64_t kCommId = 0xabcdef;

template <class Table>
constexpr bool kHasContext = requires(Table t) {
  t.finalize;
};

// The version's property record.
template <class Function>
struct SecondArgument;
template <class Record>
struct SecondArgument<abi::NcclResult (*)(int, Record*)> {
  using Type = Record;
};
template <class Table>
using PropertiesOf = typename SecondArgument<decltype(Table::getProperties)>::Type;

inline constexpr int kTrafficClass = 106;

template <class Table>
int init(const Table& t, void** context) {
  using Init = decltype(t.init);
  if constexpr (std::is_invocable_v<Init, abi::LogFn>) return t.init(FakePlugin::logger);
  if constexpr (std::is_invocable_v<Init, abi::LogFn, abi::ProfilerFn>) {
    return t.init(FakePlugin::logger, nullptr);
  }
  if constexpr (std::is_invocable_v<Init, void**, std::uint64_t, abi::LogFn>) {
    return t.init(context, kCommId, FakePlugin::logger);
  }
  if constexpr (std::is_invocable_v<Init, void**, std::uint64_t, abi::NetCommConfig*, abi::LogFn,
                                    abi::ProfilerFn>) {
    abi::NetCommConfig config{kTrafficClass};
    return t.init(context, kCommId, &config, FakePlugin::logger, nullptr);
  }
}

template <class Table>
int finalize(const Table& t, void* context) {
  if constexpr (kHasContext<Table>) return t.finalize(context);
  return 0;
}

template <class Table>
int listen(const Table& t, void* context, int device, void* handle, void** listener) {
  if constexpr (kHasContext<Table>) return t.listen(context, device, handle, listener);
  if constexpr (!kHasContext<Table>) return t.listen(device, handle, listener);
}

// -- NET

template <class Table>
int connect(const Table& t, void* context, int device, void* handle, void** comm) {
  using Connect = decltype(t.connect);
  [[maybe_unused]] abi::NetDevHandle* offload = nullptr;
  if constexpr (std::is_invocable_v<Connect, int, void*, void**>) {
    return t.connect(device, handle, comm);
  } else if constexpr (std::is_invocable_v<Connect, int, void*, void**, abi::NetDevHandle**>) {
    return t.connect(device, handle, comm, &offload);
  } else if constexpr (std::is_invocable_v<Connect, int, abi::NetCommConfig*, void*, void**,
                                           abi::NetDevHandle**>) {
    abi::NetCommConfig config{-1};
    return t.connect(device, &config, handle, comm, &offload);
  } else {
    return t.connect(context, device, handle, comm, &offload);
  }
}

template <class Table>
int accept(const Table& t, void* listener, void** comm) {
  if constexpr (std::is_invocable_v<decltype(t.accept), void*, void**>) {
    return t.accept(listener, comm);
  } else {
    abi::NetDevHandle* offload = nullptr;
    return t.accept(listener, comm, &offload);
  }
}

template <class Table>
int isend(const Table& t, void* comm, void* data, std::size_t size, int tag, void** request) {
  if constexpr (std::is_invocable_v<decltype(t.isend), void*, void*, int, int, void*, void**>) {
    return t.isend(comm, data, static_cast<int>(size), tag, nullptr, request);
  } else {
    return t.isend(comm, data, size, tag, nullptr, nullptr, request);
  }
}

template <class Table>
int irecv(const Table& t, void* comm, int n, void** data, const std::size_t* sizes, int* tags,
          void** request) {
  int small[16] = {};
  std::size_t large[16] = {};
  void* handles[16] = {};
  for (int i = 0; i < n && i < 16; ++i) {
    large[i] = sizes[i];
    small[i] = static_cast<int>(sizes[i]);
  }
  using Irecv = decltype(t.irecv);
  if constexpr (std::is_invocable_v<Irecv, void*, int, void**, int*, int*, void**, void**>) {
    return t.irecv(comm, n, data, small, tags, handles, request);
  } else if constexpr (std::is_invocable_v<Irecv, void*, int, void**, std::size_t*, int*, void**,
                                           void**>) {
    return t.irecv(comm, n, data, large, tags, handles, request);
  } else {
    return t.irecv(comm, n, data, large, tags, handles, handles, request);
  }
}

// Whether sizes are signed, so that a negative one can be passed at all.
template <class Table>
constexpr bool kHasIntSizes =
    std::is_same_v<decltype(Table::regMr), abi::NcclResult (*)(void*, void*, int, int, void**)>;

// -- COLLNET

template <class Table>
constexpr bool kHasGather = requires(Table t) {
  t.iallgather;
};

// The part type of iallgather: Sge of v8, or of v9 on.
template <class Table>
struct PartOf;
template <class Table>
requires(!requires(Table t) { t.makeVDevice; }) struct PartOf<Table> {
  using Type = abi::SgeV8;
};
template <class Table>
requires requires(Table t) { t.makeVDevice; }
struct PartOf<Table> {
  using Type = abi::SgeV9;
};

template <class Table>
int iallgather(const Table& t, void* coll, int parts, void** request) {
  typename PartOf<Table>::Type part{nullptr, reinterpret_cast<void*>(0x2000), 64};
  return t.iallgather(coll, reinterpret_cast<void*>(0x1000), parts, &part, 32, 16, 64, nullptr,
                      request);
}

template <class Table>
int ireducescatter(const Table& t, void* coll, int parts, void** request, int type = 7) {
  typename PartOf<Table>::Type part{nullptr, reinterpret_cast<void*>(0x1000), 64};
  return t.ireducescatter(coll, parts, &part, reinterpret_cast<void*>(0x2000), 32, 16, 64, type, 0,
                          nullptr, request);
}

}  // namespace riffle::drive
