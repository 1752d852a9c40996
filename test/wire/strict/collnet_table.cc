// The strict plugin's COLLNET of one version, STRICT_COLLNET_VERSION, for jobs of one node, whose
// sum is what it puts in. An operation is done with the second test. Aborts on any violation.
#include <array>
#include <cstring>
#include <new>

#include "plugin/abi/collnet.h"
#include "plugin/abi/constants.h"
#include "test/wire/strict/behaviour.h"
#include "test/wire/strict/collnet_probe.h"
#include "test/wire/strict/network.h"

#define STRICT_JOIN(a, b) a##b
#define STRICT_NAME(prefix, version) STRICT_JOIN(prefix, version)

namespace strict {
namespace {

namespace abi = riffle::abi;
using Result = abi::NcclResult;
using Table = abi::STRICT_NAME(CollNetV, STRICT_COLLNET_VERSION);

constexpr std::uint64_t kMagic = 0x5712'c011;

CollNetProbe probe{};

struct Tagged {  // what NCCL holds
  enum Kind { kContext, kListener, kColl, kRegion, kRequest } kind;
  int tests = 0;
  std::size_t bytes = 0;
};

Tagged& tagged(void* object, Tagged::Kind kind) {
  auto* const t = static_cast<Tagged*>(object);
  demand(t != nullptr && t->kind == kind, "COLLNET: an object of another kind");
  return *t;
}

Result drop(void* object, Tagged::Kind kind, int& alive) {
  delete &tagged(object, kind);
  --alive;
  return abi::kSuccess;
}

Result begin(std::size_t bytes, void** request) {
  *request = new Tagged{.kind = Tagged::kRequest, .bytes = bytes};
  ++probe.requests;
  return abi::kSuccess;
}

struct Calls {
  static Result table_init(abi::LogFn log) {
    demand(log != nullptr && probe.inits == 0, "COLLNET: init without a logger, or twice");
    ++probe.inits;
    return abi::kSuccess;
  }
  static Result table_init(void** context, std::uint64_t comm_id, abi::LogFn log) {
    demand(log != nullptr, "COLLNET: init without a logger");
    ++probe.inits;
    probe.comm_id = comm_id;
    *context = new Tagged{.kind = Tagged::kContext};
    return abi::kSuccess;
  }
  static Result table_finalize(void* context) {
    delete &tagged(context, Tagged::kContext);
    ++probe.finalizes;
    return abi::kSuccess;
  }
  static Result table_devices(int* count) {
    *count = device_count();
    return abi::kSuccess;
  }
  template <class Properties>
  static Result table_properties(int, Properties* out) {
    static char name[] = "strict0";
    Properties p{};
    p.name = name;
    p.ptrSupport = abi::kPtrHost | abi::kPtrCuda;
    p.speed = 54321;
    if constexpr (requires { p.vProps; }) {
      p.vProps.ndevs = 1;
      p.maxCollBytes = std::size_t{1} << 34;
    }
    *out = p;
    return abi::kSuccess;
  }
  template <class Members>
  static Result table_make_device(int* device, Members* members) {
    probe.members = members->ndevs;
    *device = members->devs[0] + 40;
    return abi::kSuccess;
  }
  static Result table_listen(int, void* handle, void** listener) {
    std::memcpy(handle, &kMagic, sizeof kMagic);
    *listener = new Tagged{.kind = Tagged::kListener};
    ++probe.listeners;
    return abi::kSuccess;
  }
  static Result table_listen(void* context, int device, void* handle, void** listener) {
    (void)tagged(context, Tagged::kContext);
    return table_listen(device, handle, listener);
  }
  static Result table_connect(void** handles, int count, int rank, void* listener, void** coll) {
    std::uint64_t magic = 0;
    std::memcpy(&magic, handles[0], sizeof magic);
    demand(count == 1 && rank == 0 && magic == kMagic, "COLLNET: another handle than listen's");
    (void)tagged(listener, Tagged::kListener);
    *coll = new Tagged{.kind = Tagged::kColl};
    ++probe.colls;
    return abi::kSuccess;
  }
  static Result table_support(abi::NcclDataType, abi::NcclRedOp op, int* supported) {
    *supported = op == 0 ? 1 : 0;
    return abi::kSuccess;
  }
  template <class Size>
  static Result table_reg(void* coll, void*, Size size, int, void** mhandle) {
    (void)tagged(coll, Tagged::kColl);
    demand(size > 0, "COLLNET: a region of no or a negative size");
    *mhandle = new Tagged{.kind = Tagged::kRegion};
    return abi::kSuccess;
  }
  static Result table_reg_dma_buf(void* coll, void* data, std::size_t size, int type, std::uint64_t,
                                  int fd, void** mhandle) {
    probe.dma_buf_fd = fd;
    return table_reg(coll, data, size, type, mhandle);
  }
  static Result table_dereg(void* coll, void* mhandle) {
    (void)tagged(coll, Tagged::kColl);
    delete &tagged(mhandle, Tagged::kRegion);
    return abi::kSuccess;
  }
  template <class Count>
  static Result table_all_reduce(void* coll, void* send, void* recv, Count count, abi::NcclDataType,
                                 abi::NcclRedOp, void* send_handle, void* recv_handle,
                                 void** request) {
    (void)tagged(coll, Tagged::kColl);
    (void)tagged(send_handle, Tagged::kRegion);
    (void)tagged(recv_handle, Tagged::kRegion);
    demand(count > 0, "COLLNET: a negative count");
    probe.count = static_cast<std::size_t>(count);
    std::memcpy(recv, send, probe.count);  // of bytes
    return begin(probe.count, request);
  }
  template <class Part>
  static Result table_all_gather(void* coll, void* send, int count, Part* parts, std::size_t bytes,
                                 std::size_t, std::size_t, void* send_handle, void** request) {
    (void)tagged(coll, Tagged::kColl);
    (void)tagged(send_handle, Tagged::kRegion);
    demand(count == 1, "COLLNET: not one part");
    (void)tagged(parts[0].mhandle, Tagged::kRegion);
    probe.part_bytes = parts[0].size;
    std::memcpy(parts[0].address, send, bytes);
    return begin(bytes, request);
  }
  template <class Part>
  static Result table_reduce_scatter(void* coll, int count, Part* parts, void* recv,
                                     std::size_t bytes, std::size_t, std::size_t, abi::NcclDataType,
                                     abi::NcclRedOp, void* recv_handle, void** request) {
    (void)tagged(coll, Tagged::kColl);
    (void)tagged(recv_handle, Tagged::kRegion);
    demand(count == 1, "COLLNET: not one part");
    (void)tagged(parts[0].mhandle, Tagged::kRegion);
    probe.part_bytes = parts[0].size;
    std::memcpy(recv, parts[0].address, bytes);
    return begin(bytes, request);
  }
  static Result table_iflush(void*, void*, int, void*, void** request) {
    *request = nullptr;
    return abi::kSuccess;
  }
  static Result table_test(void* request, int* done, int* size) {
    Tagged& r = tagged(request, Tagged::kRequest);
    *done = ++r.tests >= 2 ? 1 : 0;
    if (*done == 0) return abi::kSuccess;
    if (size != nullptr) *size = static_cast<int>(r.bytes);
    return drop(request, Tagged::kRequest, probe.requests);
  }
  static Result table_close(void* coll) { return drop(coll, Tagged::kColl, probe.colls); }
  static Result table_close_listen(void* listener) {
    return drop(listener, Tagged::kListener, probe.listeners);
  }
};

Table make_table() {
  Table t{};
  t.name = "strict";
  t.init = Calls::table_init;
  t.devices = Calls::table_devices;
  t.getProperties = Calls::table_properties;
  t.listen = Calls::table_listen;
  t.connect = Calls::table_connect;
  t.reduceSupport = Calls::table_support;
  t.regMr = Calls::table_reg;
  t.deregMr = Calls::table_dereg;
  if (!lacks("iallreduce")) t.iallreduce = Calls::table_all_reduce;
  t.iflush = Calls::table_iflush;
  t.test = Calls::table_test;
  t.closeColl = Calls::table_close;
  t.closeListen = Calls::table_close_listen;
#if STRICT_COLLNET_VERSION >= 6
  t.regMrDmaBuf = Calls::table_reg_dma_buf;
#endif
#if STRICT_COLLNET_VERSION >= 8
  t.iallgather = Calls::table_all_gather;
  t.ireducescatter = Calls::table_reduce_scatter;
#endif
#if STRICT_COLLNET_VERSION >= 9
  t.makeVDevice = Calls::table_make_device;
#endif
#if STRICT_COLLNET_VERSION >= 11
  t.finalize = Calls::table_finalize;
#endif
  return t;
}

}  // namespace
}  // namespace strict

extern "C" {
__attribute__((visibility("default")))
strict::Table STRICT_NAME(ncclCollNetPlugin_v, STRICT_COLLNET_VERSION) = strict::make_table();
__attribute__((visibility("default"))) void STRICT_NAME(
    strict_collnet_probe_v, STRICT_COLLNET_VERSION)(strict::CollNetProbe* out) {
  *out = strict::probe;
}
}
