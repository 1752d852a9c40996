// COLLNET: every version of NCCL's collective table on one implementation
// (collective/coll_service.h). Built like net.cc: overloads and templates over the parameter lists.
#include "plugin/abi/collnet.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "plugin/collective/coll_service.h"
#include "plugin/entry/arguments.h"
#include "plugin/entry/border.h"
#include "plugin/entry/collnet_devices.h"
#include "plugin/entry/collnet_passed.h"
#include "plugin/entry/context.h"
#include "plugin/entry/options.h"
#include "plugin/entry/regions.h"
#include "plugin/identity/identity.h"

namespace riffle::entry::collnet_table {
namespace {

// What NCCL holds as "coll object".
struct Collective {
  coll::Communicator* service;
  Regions regions;
  bool has_identity = false;  // its calls are looked up in what the profiler was told
};

Collective& collective(void* coll) { return *static_cast<Collective*>(coll); }

// Its name among identities.
std::uint64_t id_of(const void* coll) { return reinterpret_cast<std::uintptr_t>(coll); }

// The communicator id of v11 on, for listen.
struct Context {
  std::uint64_t comm_id;
};

Status check_operation(abi::NcclDataType type, abi::NcclRedOp op) {
  if (type >= 0 && type < kDataTypes && op >= 0 && op < kReduceOps) return Status::ok();
  return invalid_argument("datatype " + std::to_string(type) + ", operator " + std::to_string(op) +
                          ": accepted are datatypes 0..11 and operators 0..3");
}

// The one part of an all-gather's receive or a reduce-scatter's send: NCCL never passes more.
template <class Part>
Status only_part(int count, const Part* parts, void** address) {
  if (count != 1) {
    return invalid_argument(std::to_string(count) + " buffer parts, accepted is exactly 1");
  }
  *address = parts[0].address;
  return Status::ok();
}

Status publish_request(Result<coll::Request*> made, void** request) {
  if (!made) return made.status();
  *request = *made;  // null: all request slots are taken, NCCL calls again
  return Status::ok();
}

// -- life cycle

template <class Table>
Table& exported();

// The library's own COLLNET, where all-reduces are left to NCCL and it has one.
template <class Table>
bool is_passed_on(abi::LogFn log) {
  return options().passes_on_collnet && is_wire_in_use() && are_collectives_left_to_nccl(log) &&
         passed_collnet<Table>().version > 0;
}

template <class Table>
abi::NcclResult begin(std::uint64_t comm_id, abi::LogFn log, void** context) {
  if (context != nullptr) *context = nullptr;
  std::optional<abi::NcclResult> passed;
  const abi::NcclResult code = guard("COLLNET init", [&] {
    if (is_passed_on<Table>(log)) {
      passed = start_passed_collnet(comm_id, log, context, &exported<Table>());
    }
    return Status::ok();
  });
  if (code != abi::kSuccess) return code;
  if (passed) return *passed;
  return start_or_decline("COLLNET init", log, are_collectives_left_to_nccl, [&] {
    if (context != nullptr) *context = new Context{comm_id};
    return Status::ok();
  });
}

template <class Table>
abi::NcclResult init(abi::LogFn log) {
  return begin<Table>(0, log, nullptr);
}

template <class Table>
abi::NcclResult init(void** context, std::uint64_t comm_id, abi::LogFn log) {
  return begin<Table>(comm_id, log, context);
}

abi::NcclResult finalize(void* context) {
  delete static_cast<Context*>(context);
  return abi::kSuccess;
}

// The same count as NET's whatever the knobs say: NCCL 2.30 wants it equal on all ranks.
abi::NcclResult devices(int* count) {
  *count = 0;
  return guard("COLLNET devices", [&] { return count_shown_devices(count); });
}

template <class Properties>
abi::NcclResult get_properties(int device, Properties* properties) {
  return guard("COLLNET getProperties", [&] { return fill_shown_properties(device, properties); });
}

abi::NcclResult reduce_support(abi::NcclDataType type, abi::NcclRedOp op, int* supported) {
  *supported = 0;
  return guard("COLLNET reduceSupport", [&] {
    *supported = coll::reduce_support(type, op) ? 1 : 0;
    return Status::ok();
  });
}

// -- connections

abi::NcclResult listen_as(std::uint64_t comm_id, int device, void* handle, void** listener) {
  *listener = nullptr;
  return guard("COLLNET listen", [&]() -> Status {
    int own = device;
    if (Status status = find_own_device(device, &own); !status) return status;
    auto made = coll::listen(options().transport, own, comm_id, static_cast<Handle*>(handle));
    if (!made) return made.status();
    *listener = *made;
    return Status::ok();
  });
}

abi::NcclResult listen(int device, void* handle, void** listener) {
  return listen_as(0, device, handle, listener);
}

abi::NcclResult listen(void* context, int device, void* handle, void** listener) {
  const auto* c = static_cast<const Context*>(context);
  return listen_as(c == nullptr ? 0 : c->comm_id, device, handle, listener);
}

// After a success of connect NCCL closes the listener, after an error it forgets it (every release
// to 2.30), so the error path closes it here.
struct CloseForgotten {
  void operator()(coll::Listener* listener) const noexcept {
    try {
      coll::close(listener);
    } catch (...) {
      // The error that led here is the one to report.
    }
  }
};

// A null communicator without an error says that all nodes agreed to fall back to NCCL, which then
// carries on without COLLNET, as after an error, but nothing is wrong.
abi::NcclResult connect(void** handles, int count, int rank, void* listener, void** coll) {
  *coll = nullptr;
  return guard("COLLNET connect", [&]() -> Status {
    std::unique_ptr<coll::Listener, CloseForgotten> own(static_cast<coll::Listener*>(listener));
    if (count < 1) return invalid_argument("connect with " + std::to_string(count) + " nodes");
    const std::span blobs(reinterpret_cast<const Handle* const*>(handles),
                          static_cast<std::size_t>(count));
    auto made = coll::connect(blobs, rank, own.get(), options().collective);
    if (!made) return made.status();
    if (*made != nullptr) {
      try {
        std::unique_ptr<Collective> object(
            new Collective{*made, {}, identity::is_looked_up(options().identity)});
        if (object->has_identity) identity::begin_coll(id_of(object.get()), count);
        *coll = object.release();
      } catch (...) {
        coll::close(*made);
        throw;
      }
    }
    (void)own.release();
    return Status::ok();
  });
}

abi::NcclResult close_coll(void* coll) {
  return guard("COLLNET closeColl", [&] {
    const std::unique_ptr<Collective> closed(&collective(coll));
    if (closed->has_identity) identity::end_coll(id_of(coll), options().identity);
    coll::close(closed->service);
    return Status::ok();
  });
}

abi::NcclResult close_listen(void* listener) {
  return guard("COLLNET closeListen", [&] {
    coll::close(static_cast<coll::Listener*>(listener));
    return Status::ok();
  });
}

// -- memory

template <class Size>
abi::NcclResult reg_mr(void* coll, void* data, Size size, int type, void** mhandle) {
  *mhandle = nullptr;
  return guard("COLLNET regMr", [&] {
    Status status = register_region(collective(coll).regions, data, size, type, mhandle);
    if (status && collective(coll).has_identity) {
      identity::add_region(id_of(coll), data, static_cast<std::size_t>(size));
    }
    return status;
  });
}

abi::NcclResult dereg_mr(void* coll, void* mhandle) {
  return guard("COLLNET deregMr", [&] {
    Collective& c = collective(coll);
    deregister_region(c.regions, mhandle, [&](const void* base, std::size_t size) {
      if (c.has_identity) identity::drop_region(id_of(coll), base);
      coll::fence(c.service, base, size);
    });
    return Status::ok();
  });
}

// -- operations

template <class Count>
abi::NcclResult iallreduce(void* coll, void* send, void* recv, Count count, abi::NcclDataType type,
                           abi::NcclRedOp op, void*, void*, void** request) {
  *request = nullptr;
  return guard_transfer("COLLNET iallreduce", [&]() -> Status {
    std::size_t elements = 0;
    if (Status status = to_size(count, &elements); !status) return status;
    if (Status status = check_operation(type, op); !status) return status;
    const Collective& c = collective(coll);
    return publish_request(
        coll::all_reduce(c.service, send, recv, elements, static_cast<DataType>(type),
                         static_cast<ReduceOp>(op), c.has_identity ? id_of(coll) : 0),
        request);
  });
}

template <class Part>
abi::NcclResult iallgather(void* coll, void* send, int count, Part* parts,
                           std::size_t bytes_per_rank, std::size_t window_offset,
                           std::size_t window_bytes, void*, void** request) {
  *request = nullptr;
  return guard_transfer("COLLNET iallgather", [&]() -> Status {
    void* recv = nullptr;
    if (Status status = only_part(count, parts, &recv); !status) return status;
    return publish_request(coll::all_gather(collective(coll).service, send, recv, bytes_per_rank,
                                            window_offset, window_bytes),
                           request);
  });
}

template <class Part>
abi::NcclResult ireducescatter(void* coll, int count, Part* parts, void* recv,
                               std::size_t bytes_per_rank, std::size_t window_offset,
                               std::size_t window_bytes, abi::NcclDataType type, abi::NcclRedOp op,
                               void*, void** request) {
  *request = nullptr;
  return guard_transfer("COLLNET ireducescatter", [&]() -> Status {
    void* send = nullptr;
    if (Status status = only_part(count, parts, &send); !status) return status;
    if (Status status = check_operation(type, op); !status) return status;
    return publish_request(
        coll::reduce_scatter(collective(coll).service, send, recv, bytes_per_rank, window_offset,
                             window_bytes, static_cast<DataType>(type), static_cast<ReduceOp>(op)),
        request);
  });
}

// Host memory needs no flush; a null request is enough for NCCL's staging buffers, and registered
// user buffers exist in GPU memory only.
abi::NcclResult iflush(void*, void*, int, void*, void** request) {
  *request = nullptr;
  return abi::kSuccess;
}

abi::NcclResult test(void* request, int* done, int* size) {
  *done = 0;
  return guard_transfer("COLLNET test", [&]() -> Status {
    auto finished = coll::test(static_cast<coll::Request*>(request), size);
    if (!finished) return finished.status();
    *done = *finished ? 1 : 0;
    return Status::ok();
  });
}

// Left null, which NCCL understands: regMrDmaBuf (host memory only), makeVDevice.
template <class Table>
constexpr Table make_table() {
  Table table{};
  table.name = kPluginName;
  table.init = init<Table>;
  table.devices = devices;
  table.getProperties = get_properties;
  table.listen = listen;
  table.connect = connect;
  table.reduceSupport = reduce_support;
  table.regMr = reg_mr;
  table.deregMr = dereg_mr;
  table.iallreduce = iallreduce;
  if constexpr (requires { table.iallgather; }) {
    table.iallgather = iallgather;
    table.ireducescatter = ireducescatter;
  }
  table.iflush = iflush;
  table.test = test;
  table.closeColl = close_coll;
  table.closeListen = close_listen;
  if constexpr (requires { table.finalize; }) table.finalize = finalize;
  return table;
}

}  // namespace
}  // namespace riffle::entry::collnet_table

// Not const: they may become a library's (collnet_passed.h).
#define RIFFLE_COLLNET(version)                                                            \
  extern "C" {                                                                             \
  __attribute__((visibility(                                                               \
      "default"))) constinit riffle::abi::CollNetV##version ncclCollNetPlugin_v##version = \
      riffle::entry::collnet_table::make_table<riffle::abi::CollNetV##version>();          \
  }                                                                                        \
  namespace riffle::entry::collnet_table {                                                 \
  namespace {                                                                              \
  template <>                                                                              \
  abi::CollNetV##version& exported() {                                                     \
    return ncclCollNetPlugin_v##version;                                                   \
  }                                                                                        \
  }                                                                                        \
  }
RIFFLE_COLLNET(5)
RIFFLE_COLLNET(6)
RIFFLE_COLLNET(7)
RIFFLE_COLLNET(8)
RIFFLE_COLLNET(9)
RIFFLE_COLLNET(10)
RIFFLE_COLLNET(11)
RIFFLE_COLLNET(12)
