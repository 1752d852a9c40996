// The strict plugin's table of one version, STRICT_VERSION: the version's parameter lists on the
// one network. Several of these may be linked into one library.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/abi/net.h"
#include "test/wire/strict/behaviour.h"
#include "test/wire/strict/network.h"

#define STRICT_JOIN(a, b) a##b
#define STRICT_NAME(prefix, version) STRICT_JOIN(prefix, version)

namespace strict {
namespace {

namespace abi = riffle::abi;
using Table = abi::STRICT_NAME(NetV, STRICT_VERSION);

constexpr std::size_t kMostParts = 8;
constexpr int kMostRequests = STRICT_VERSION <= 6 ? 8 : abi::kNetMaxRequests;  // as of NCCL 2.18

// Which of them a version uses, the types of its members say.
struct Calls {
  // -- life cycle

  static Result table_init(abi::LogFn log) {
    demand(log != nullptr, "init without a logger");
    return start_once(kMostRequests);
  }

  static Result table_init(abi::LogFn log, abi::ProfilerFn) { return table_init(log); }

  static Result table_init(void** context, std::uint64_t comm_id, abi::NetCommConfig* config,
                           abi::LogFn log, abi::ProfilerFn) {
    demand(log != nullptr && config != nullptr, "init without a logger or a configuration");
    return start(context, comm_id, config->trafficClass);
  }

  static Result table_finalize(void* context) { return finalize(context); }

  static Result table_devices(int* count) {
    *count = device_count();
    return abi::kSuccess;
  }

  // Every field has a value of its own.
  template <class Properties>
  static Result table_properties(int device, Properties* out) {
    if (const Result result = check_device(device); result != abi::kSuccess) return result;
    static std::array<char, 8> names[] = {{"strict0"}, {"strict1"}, {"strict2"}, {"strict3"}};
    static char path[] = "/sys/devices/strict";
    Properties p{};
    p.name = names[std::min(device, 3)].data();
    p.pciPath = path;
    p.guid = 0x5712c7 + static_cast<std::uint64_t>(device);
    p.ptrSupport = abi::kPtrHost | abi::kPtrCuda | abi::kPtrDmaBuf;
    p.speed = 12345;
    p.port = 3;
    p.latency = 2.5F;
    p.maxComms = 77;
    p.maxRecvs = static_cast<int>(kMostParts);
    if constexpr (requires { p.netDeviceType; }) {
      p.netDeviceType = offloads() ? abi::kDeviceUnpack : abi::kDeviceHost;
      p.netDeviceVersion = offloads() ? abi::kDeviceVersionUnpack : 0;
    }
    if constexpr (requires { p.regIsGlobal; }) p.regIsGlobal = 1;
    if constexpr (requires { p.vProps; }) {
      p.forceFlush = 1;
      const abi::NetVPropsV12 members = members_of(device);
      p.vProps.ndevs = members.ndevs;
      std::copy_n(members.devs, members.ndevs, p.vProps.devs);
      p.maxP2pBytes = std::size_t{1} << 33;
      p.maxCollBytes = std::size_t{1} << 34;
    }
    if constexpr (requires { p.maxMultiRequestSize; }) p.maxMultiRequestSize = 4;
    if constexpr (requires { p.railId; }) {
      p.railId = 5;
      p.planeId = 6;
    }
    *out = p;
    return abi::kSuccess;
  }

  template <class Members>
  static Result table_make_device(int* device, Members* members) {
    abi::NetVPropsV12 all{.ndevs = members->ndevs, .devs = {}};
    demand(all.ndevs >= 1 && all.ndevs <= static_cast<int>(std::size(members->devs)),
           "a virtual device of no or too many members");
    std::copy_n(members->devs, all.ndevs, all.devs);
    return make_device(device, all);
  }

  static Result table_attributes(void* context, abi::NetAttr* attributes) {
    return set_attributes(context, *attributes);
  }

  // -- connections

  static Result table_listen(int device, void* handle, void** listener) {
    return listen(false, nullptr, device, handle, listener);
  }
  static Result table_listen(void* context, int device, void* handle, void** listener) {
    return listen(true, context, device, handle, listener);
  }

  static Result table_connect(int device, void* handle, void** comm) {
    return connect(false, nullptr, device, 0, handle, comm, nullptr);
  }
  static Result table_connect(int device, void* handle, void** comm, abi::NetDevHandle** offload) {
    return connect(false, nullptr, device, 0, handle, comm, offload);
  }
  static Result table_connect(int device, abi::NetCommConfig* config, void* handle, void** comm,
                              abi::NetDevHandle** offload) {
    demand(config != nullptr, "connect without a configuration");
    return connect(false, nullptr, device, config->trafficClass, handle, comm, offload);
  }
  static Result table_connect(void* context, int device, void* handle, void** comm,
                              abi::NetDevHandle** offload) {
    return connect(true, context, device, 0, handle, comm, offload);
  }

  static Result table_accept(void* listener, void** comm) {
    return accept(listener, comm, nullptr);
  }
  static Result table_accept(void* listener, void** comm, abi::NetDevHandle** offload) {
    return accept(listener, comm, offload);
  }

  static Result table_close_send(void* comm) { return close_connection(comm, true); }
  static Result table_close_recv(void* comm) { return close_connection(comm, false); }
  static Result table_close_listen(void* listener) { return close_listener(listener); }

  // -- memory

  template <class Size>
  static Result table_reg(void* comm, void* data, Size size, int type, void** mhandle) {
    return register_region(comm, data, static_cast<std::size_t>(size), type, -1, mhandle);
  }
  static Result table_reg_dma_buf(void* comm, void* data, std::size_t size, int type,
                                  std::uint64_t offset, int fd, void** mhandle) {
    demand(offset == 0 && fd >= 0, "a DMA-BUF of NCCL's has offset 0 and a descriptor");
    return register_region(comm, data, size, type, fd, mhandle);
  }
  static Result table_dereg(void* comm, void* mhandle) { return deregister_region(comm, mhandle); }
  static Result table_device_mr(void* comm, void* mhandle, void** out) {
    return device_region(comm, mhandle, out);
  }

  // -- transfers

  template <class Size>
  static Result table_isend(void* comm, void* data, Size size, int tag, void* mhandle,
                            void* profiler, void** request) {
    demand(size >= 0, "a negative size");
    return send(comm, data, static_cast<std::size_t>(size), tag, mhandle, profiler, request);
  }
  template <class Size>
  static Result table_isend(void* comm, void* data, Size size, int tag, void* mhandle,
                            void** request) {
    return table_isend(comm, data, size, tag, mhandle, nullptr, request);
  }

  template <class Size>
  static Result table_irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                            void** profilers, void** request) {
    demand(n >= 1 && n <= static_cast<int>(kMostParts), "a group of receives beyond maxRecvs");
    std::array<std::size_t, kMostParts> large{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      demand(sizes[i] >= 0, "a negative size");
      large[i] = static_cast<std::size_t>(sizes[i]);
    }
    void* const profiler = profilers == nullptr ? nullptr : profilers[0];
    return receive(comm, n, data, large.data(), tags, mhandles, profiler, request);
  }
  template <class Size>
  static Result table_irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                            void** request) {
    return table_irecv(comm, n, data, sizes, tags, mhandles, nullptr, request);
  }

  static Result table_iflush(void* comm, int n, void** data, int* sizes, void** mhandles,
                             void** request) {
    return flush(comm, n, data, sizes, mhandles, request);
  }
  static Result table_test(void* request, int* done, int* sizes) {
    return test(request, done, sizes);
  }
  static Result table_consumed(void* comm, int n, void* request) {
    return consume(comm, n, request);
  }
};

// A member stays null where STRICT_NET_LACKS names it.
#define STRICT_MEMBER(member, function) \
  if (!lacks(#member)) table.member = Calls::function

Table make_table() {
  Table table{};
  table.name = "strict";
  STRICT_MEMBER(init, table_init);
  STRICT_MEMBER(devices, table_devices);
  STRICT_MEMBER(getProperties, table_properties);
  STRICT_MEMBER(listen, table_listen);
  STRICT_MEMBER(connect, table_connect);
  STRICT_MEMBER(accept, table_accept);
  STRICT_MEMBER(regMr, table_reg);
  STRICT_MEMBER(deregMr, table_dereg);
  STRICT_MEMBER(isend, table_isend);
  STRICT_MEMBER(irecv, table_irecv);
  STRICT_MEMBER(iflush, table_iflush);
  STRICT_MEMBER(test, table_test);
  STRICT_MEMBER(closeSend, table_close_send);
  STRICT_MEMBER(closeRecv, table_close_recv);
  STRICT_MEMBER(closeListen, table_close_listen);
#if STRICT_VERSION >= 6
  STRICT_MEMBER(regMrDmaBuf, table_reg_dma_buf);
#endif
#if STRICT_VERSION >= 7
  STRICT_MEMBER(getDeviceMr, table_device_mr);
  STRICT_MEMBER(irecvConsumed, table_consumed);
#endif
#if STRICT_VERSION >= 9
  STRICT_MEMBER(makeVDevice, table_make_device);
#endif
#if STRICT_VERSION >= 11
  STRICT_MEMBER(finalize, table_finalize);
  STRICT_MEMBER(setNetAttr, table_attributes);
#endif
  return table;
}

}  // namespace
}  // namespace strict

extern "C" {
__attribute__((visibility("default")))
strict::Table STRICT_NAME(ncclNetPlugin_v, STRICT_VERSION) = strict::make_table();
}
