// A NET plugin that does nothing at once, with one table, v12, v9 or v8 (NULL_NET_VERSION): what is
// left of a call through Riffle's tables is what Riffle adds (wire_bench.cc).
#include <cstddef>
#include <cstdint>

#include "plugin/abi/net.h"

namespace {

using namespace riffle::abi;

int request;

// Which of them a version uses, the types of its members say.
struct Calls {
  static NcclResult init(LogFn) { return 0; }
  static NcclResult init(void** context, std::uint64_t, NetCommConfig*, LogFn, ProfilerFn) {
    *context = &request;
    return 0;
  }
  static NcclResult finalize(void*) { return 0; }
  static NcclResult devices(int* count) {
    *count = 1;
    return 0;
  }
  template <class Properties>
  static NcclResult properties(int, Properties* p) {
    *p = {};
    return 0;
  }
  static NcclResult listen(int, void*, void** listener) {
    *listener = &request;
    return 0;
  }
  static NcclResult listen(void*, int, void*, void** listener) {
    return listen(0, nullptr, listener);
  }
  static NcclResult connect(int, void*, void** comm, NetDevHandle**) {
    *comm = &request;
    return 0;
  }
  static NcclResult connect(void*, int, void*, void** comm, NetDevHandle**) {
    return connect(0, nullptr, comm, nullptr);
  }
  static NcclResult accept(void*, void** comm, NetDevHandle**) {
    return connect(0, nullptr, comm, nullptr);
  }
  template <class Size>
  static NcclResult reg(void*, void*, Size, int, void** mhandle) {
    *mhandle = &request;
    return 0;
  }
  static NcclResult with_one(void*) { return 0; }
  static NcclResult with_two(void*, void*) { return 0; }
  template <class Size>
  static NcclResult isend(void*, void*, Size, int, void*, void** out) {
    *out = &request;
    return 0;
  }
  template <class Size>
  static NcclResult isend(void*, void*, Size, int, void*, void*, void** out) {
    *out = &request;
    return 0;
  }
  template <class Size>
  static NcclResult irecv(void*, int, void**, Size*, int*, void**, void** out) {
    *out = &request;
    return 0;
  }
  template <class Size>
  static NcclResult irecv(void*, int, void**, Size*, int*, void**, void**, void** out) {
    *out = &request;
    return 0;
  }
  static NcclResult iflush(void*, int, void**, int*, void**, void** out) {
    *out = nullptr;
    return 0;
  }
  static NcclResult test(void*, int* done, int*) {
    *done = 1;
    return 0;
  }
};

template <class Table>
constexpr Table make_table() {
  Table t{};
  t.name = "null";
  t.init = Calls::init;
  t.devices = Calls::devices;
  t.getProperties = Calls::properties;
  t.listen = Calls::listen;
  t.connect = Calls::connect;
  t.accept = Calls::accept;
  t.regMr = Calls::reg;
  t.deregMr = Calls::with_two;
  t.isend = Calls::isend;
  t.irecv = Calls::irecv;
  t.iflush = Calls::iflush;
  t.test = Calls::test;
  t.closeSend = Calls::with_one;
  t.closeRecv = Calls::with_one;
  t.closeListen = Calls::with_one;
  if constexpr (requires { t.finalize; }) t.finalize = Calls::finalize;
  return t;
}

}  // namespace

#define NULL_NET(name, version)                                                            \
  extern "C" __attribute__((visibility("default"))) const riffle::abi::NetV##version name; \
  const riffle::abi::NetV##version name = make_table<riffle::abi::NetV##version>();
#if NULL_NET_VERSION == 12
NULL_NET(ncclNetPlugin_v12, 12)
#elif NULL_NET_VERSION == 9
NULL_NET(ncclNetPlugin_v9, 9)
#else
NULL_NET(ncclNetPlugin_v8, 8)
#endif
