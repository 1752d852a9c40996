// Riffle's own NET: every version of NCCL's point-to-point table on one implementation
// (net/net_service.h).
//
// The functions below are overloads and templates over the parameter lists that the versions have;
// fill_own_net assigns each name to its member, and the member's type picks the overload.
#include "plugin/entry/net_own.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "plugin/abi/net.h"
#include "plugin/entry/arguments.h"
#include "plugin/entry/border.h"
#include "plugin/entry/context.h"
#include "plugin/entry/options.h"
#include "plugin/entry/properties.h"
#include "plugin/entry/regions.h"
#include "plugin/net/net_service.h"

namespace riffle::entry::net_table {
namespace {

// What NCCL holds as "send object" or "receive object": regMr does not tell which one it has.
struct Connection {
  std::variant<net::SendConnection*, net::RecvConnection*> service;
  Regions regions;
};

Connection& connection(void* comm) { return *static_cast<Connection*>(comm); }

template <class Service>
Status publish_connection(Result<Service*> service, void** comm, abi::NetDevHandle** device) {
  if (device != nullptr) *device = nullptr;
  if (!service) return service.status();
  if (*service == nullptr) return Status::ok();  // not yet: NCCL calls again
  try {
    *comm = new Connection{*service, {}};
  } catch (...) {
    net::close(*service);
    throw;
  }
  return Status::ok();
}

// -- life cycle

abi::NcclResult finalize(void* context) {
  return guard("NET finalize", [&] {
    end_communicator(context);
    return Status::ok();
  });
}

abi::NcclResult devices(int* count) {
  *count = 0;
  return guard("NET devices", [&] { return count_devices(count); });
}

template <class Properties>
abi::NcclResult get_properties(int device, Properties* properties) {
  return guard("NET getProperties", [&] { return fill_properties(device, properties); });
}

// -- connections

abi::NcclResult listen_as(std::uint64_t comm_id, int device, void* handle, void** listener) {
  *listener = nullptr;
  return guard("NET listen", [&]() -> Status {
    if (Status status = check_device(device); !status) return status;
    auto made = net::listen(options().transport, device, comm_id, static_cast<Handle*>(handle));
    if (!made) return made.status();
    *listener = *made;
    return Status::ok();
  });
}

abi::NcclResult listen(int device, void* handle, void** listener) {
  return listen_as(0, device, handle, listener);
}

abi::NcclResult listen(void* context, int device, void* handle, void** listener) {
  return listen_as(comm_id_of(context), device, handle, listener);
}

abi::NcclResult connect(int device, void* handle, void** comm, abi::NetDevHandle** device_handle) {
  *comm = nullptr;
  return guard("NET connect", [&]() -> Status {
    if (Status status = check_device(device); !status) return status;
    return publish_connection(
        net::connect(options().transport, options().net, device, static_cast<Handle*>(handle)),
        comm, device_handle);
  });
}

abi::NcclResult connect(int device, void* handle, void** comm) {
  return connect(device, handle, comm, nullptr);
}

abi::NcclResult connect(int device, abi::NetCommConfig*, void* handle, void** comm,
                        abi::NetDevHandle** device_handle) {
  return connect(device, handle, comm, device_handle);
}

abi::NcclResult connect(void*, int device, void* handle, void** comm,
                        abi::NetDevHandle** device_handle) {
  return connect(device, handle, comm, device_handle);
}

abi::NcclResult accept(void* listener, void** comm, abi::NetDevHandle** device_handle) {
  *comm = nullptr;
  return guard("NET accept", [&] {
    return publish_connection(net::accept(static_cast<net::Listener*>(listener)), comm,
                              device_handle);
  });
}

abi::NcclResult accept(void* listener, void** comm) { return accept(listener, comm, nullptr); }

template <class Service>
abi::NcclResult close_connection(const char* function, void* comm) {
  return guard(function, [&] {
    const std::unique_ptr<Connection> closed(&connection(comm));
    net::close(std::get<Service*>(closed->service));
    return Status::ok();
  });
}

abi::NcclResult close_send(void* comm) {
  return close_connection<net::SendConnection>("NET closeSend", comm);
}

abi::NcclResult close_recv(void* comm) {
  return close_connection<net::RecvConnection>("NET closeRecv", comm);
}

abi::NcclResult close_listen(void* listener) {
  return guard("NET closeListen", [&] {
    net::close(static_cast<net::Listener*>(listener));
    return Status::ok();
  });
}

// -- memory

template <class Size>
abi::NcclResult reg_mr(void* comm, void* data, Size size, int type, void** mhandle) {
  return guard("NET regMr", [&] {
    return register_region(connection(comm).regions, data, size, type, mhandle);
  });
}

abi::NcclResult dereg_mr(void* comm, void* mhandle) {
  return guard("NET deregMr", [&] {
    Connection& c = connection(comm);
    deregister_region(c.regions, mhandle, [&](const void* base, std::size_t size) {
      std::visit([&](auto* service) { net::fence(service, base, size); }, c.service);
    });
    return Status::ok();
  });
}

// -- transfers

template <class Size>
abi::NcclResult isend(void* comm, void* data, Size size, int tag, void*, void** request) {
  *request = nullptr;
  return guard_transfer("NET isend", [&]() -> Status {
    std::size_t bytes = 0;
    if (Status status = to_size(size, &bytes); !status) return status;
    auto sent =
        net::isend(std::get<net::SendConnection*>(connection(comm).service), data, bytes, tag);
    if (!sent) return sent.status();
    *request = *sent;
    return Status::ok();
  });
}

template <class Size>
abi::NcclResult isend(void* comm, void* data, Size size, int tag, void* mhandle, void*,
                      void** request) {
  return isend(comm, data, size, tag, mhandle, request);
}

// *request may hold the marker "completion is optional"; a completion never hurts, so it is
// ignored.
template <class Size>
abi::NcclResult irecv(void* comm, int n, void** data, Size* sizes, int* tags, void**,
                      void** request) {
  *request = nullptr;
  return guard_transfer("NET irecv", [&]() -> Status {
    if (n < 1 || n > net::kMaxGroupedRecvs) {
      return invalid_argument("a group of " + std::to_string(n) + " receives, accepted are 1.." +
                              std::to_string(net::kMaxGroupedRecvs));
    }
    const auto count = static_cast<std::size_t>(n);
    std::array<std::size_t, net::kMaxGroupedRecvs> capacities{};
    for (std::size_t i = 0; i < count; ++i) {
      if (Status status = to_size(sizes[i], &capacities[i]); !status) return status;
    }
    auto posted = net::irecv(std::get<net::RecvConnection*>(connection(comm).service),
                             {data, count}, {capacities.data(), count}, {tags, count});
    if (!posted) return posted.status();
    *request = *posted;
    return Status::ok();
  });
}

template <class Size>
abi::NcclResult irecv(void* comm, int n, void** data, Size* sizes, int* tags, void** mhandles,
                      void**, void** request) {
  return irecv(comm, n, data, sizes, tags, mhandles, request);
}

// Host memory needs no flush: a null request tells NCCL to go on.
abi::NcclResult iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return abi::kSuccess;
}

abi::NcclResult test(void* request, int* done, int* sizes) {
  *done = 0;
  return guard_transfer("NET test", [&]() -> Status {
    auto finished = net::test(static_cast<net::Request*>(request), sizes);
    if (!finished) return finished.status();
    *done = *finished ? 1 : 0;
    return Status::ok();
  });
}

}  // namespace
}  // namespace riffle::entry::net_table

namespace riffle::entry {

template <class Table>
void fill_own_net(Table* table) {
  using namespace net_table;
  table->devices = devices;
  table->getProperties = get_properties;
  table->listen = listen;
  table->connect = connect;
  table->accept = accept;
  table->regMr = reg_mr;
  table->deregMr = dereg_mr;
  table->isend = isend;
  table->irecv = irecv;
  table->iflush = iflush;
  table->test = test;
  table->closeSend = close_send;
  table->closeRecv = close_recv;
  table->closeListen = close_listen;
  if constexpr (requires { table->finalize; }) table->finalize = finalize;
}

template void fill_own_net(abi::NetV5*);
template void fill_own_net(abi::NetV6*);
template void fill_own_net(abi::NetV7*);
template void fill_own_net(abi::NetV8*);
template void fill_own_net(abi::NetV9*);
template void fill_own_net(abi::NetV10*);
template void fill_own_net(abi::NetV11*);
template void fill_own_net(abi::NetV12*);

}  // namespace riffle::entry
