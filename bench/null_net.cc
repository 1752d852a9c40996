// A NET plugin that does nothing at once, with one table, v12, v9 or v8 (NULL_NET_VERSION): what is
// left of a call through Riffle's tables is what Riffle adds (wire_bench.cc).
#include <cstddef>
#include <cstdint>

#include "plugin/abi/net.h"

namespace {

using namespace riffle::abi;

int request;

NcclResult init(LogFn) { return 0; }
NcclResult init(void** context, std::uint64_t, NetCommConfig*, LogFn, ProfilerFn) {
  *context = &request;
  return 0;
}
NcclResult finalize(void*) { return 0; }
NcclResult devices(int* count) {
  *count = 1;
  return 0;
}
template <class Properties>
NcclResult properties(int, Properties* p) {
  *p = {};
  return 0;
}
NcclResult listen(int, void*, void** listener) {
  *listener = &request;
  return 0;
}
NcclResult listen(void*, int, void*, void** listener) { return listen(0, nullptr, listener); }
NcclResult connect(int, void*, void** comm, NetDevHandle**) {
  *comm = &request;
  return 0;
}
NcclResult connect(void*, int, void*, void** comm, NetDevHandle**) {
  return connect(0, nullptr, comm, nullptr);
}
NcclResult accept(void*, void** comm, NetDevHandle**) { return connect(0, nullptr, comm, nullptr); }
template <class Size>
NcclResult reg(void*, void*, Size, int, void** mhandle) {
  *mhandle = &request;
  return 0;
}
NcclResult with_one(void*) { return 0; }
NcclResult with_two(void*, void*) { return 0; }
template <class Size>
NcclResult isend(void*, void*, Size, int, void*, void** out) {
  *out = &request;
  return 0;
}
template <class Size>
NcclResult isend(void*, void*, Size, int, void*, void*, void** out) {
  *out = &request;
  return 0;
}
template <class Size>
NcclResult irecv(void*, int, void**, Size*, int*, void**, void** out) {
  *out = &request;
  return 0;
}
template <class Size>
NcclResult irecv(void*, int, void**, Size*, int*, void**, void**, void** out) {
  *out = &request;
  return 0;
}
NcclResult iflush(void*, int, void**, int*, void**, void** out) {
  *out = nullptr;
  return 0;
}
NcclResult test(void*, int* done, int*) {
  *done = 1;
  return 0;
}

template <class Table>
constexpr Table make_table() {
  Table t{};
  t.name = "null";
  t.init = init;
  t.devices = devices;
  t.getProperties = properties;
  t.listen = listen;
  t.connect = connect;
  t.accept = accept;
  t.regMr = reg;
  t.deregMr = with_two;
  t.isend = isend;
  t.irecv = irecv;
  t.iflush = iflush;
  t.test = test;
  t.closeSend = with_one;
  t.closeRecv = with_one;
  t.closeListen = with_one;
  if constexpr (requires { t.finalize; }) t.finalize = finalize;
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
