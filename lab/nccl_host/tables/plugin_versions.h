// Adapters from one version of the C tables to NetTable, CollNetTable, TunerTable and
// ProfilerTable. The differences between versions are few and all of one kind (an argument more, a
// wider integer), so each adapter is one template with the version as a parameter.
#pragma once

#include <unistd.h>

#include <type_traits>

#include "lab/nccl_host/tables/plugin_tables.h"
#include "plugin/abi/collnet.h"
#include "plugin/abi/constants.h"
#include "plugin/abi/net.h"
#include "plugin/abi/profiler.h"
#include "plugin/abi/tuner.h"

namespace riffle::host {

// The logger handed to the plugin: NCCL_DEBUG decides what reaches stderr. Any thread.
void log_from_plugin(int level, unsigned long subsystems, const char* file, int line,
                     const char* format, ...);

template <class Props>
DeviceProperties to_properties(const Props& p) {
  DeviceProperties out;
  out.name = p.name == nullptr ? "" : p.name;
  out.pci_path = p.pciPath == nullptr ? "" : p.pciPath;
  out.guid = p.guid;
  out.pointer_types = p.ptrSupport;
  out.speed_mbps = p.speed;
  out.port = p.port;
  out.latency_us = p.latency;
  out.max_comms = p.maxComms;
  out.max_receives = p.maxRecvs;
  if constexpr (requires { p.maxP2pBytes; }) {
    out.max_p2p_bytes = p.maxP2pBytes;
    out.max_coll_bytes = p.maxCollBytes;
  }
  return out;
}

// The property record that a getProperties member fills.
template <class F>
struct PropertiesOf;
template <class P>
struct PropertiesOf<abi::NcclResult (*)(int, P*)> {
  using Type = P;
};

template <class Table, int kVersion>
class NetAdapter final : public NetTable {
 public:
  explicit NetAdapter(const Table* table) : t_(table) {}
  const char* name() const override { return t_->name; }
  int init(std::uint64_t comm_id, void** context) override {
    if constexpr (kVersion >= 11) {
      abi::NetCommConfig config{-1};
      return t_->init(context, comm_id, &config, log_from_plugin, nullptr);
    } else {
      *context = nullptr;
      if (initialised_) return kSuccess;
      int result;
      if constexpr (kVersion == 10) {
        result = t_->init(log_from_plugin, nullptr);
      } else {
        result = t_->init(log_from_plugin);
      }
      initialised_ = result == kSuccess;
      return result;
    }
  }
  int finalize(void* context) override {
    if constexpr (kVersion >= 11) return t_->finalize(context);
    return kSuccess;
  }
  int devices(int* count) override { return t_->devices(count); }
  int properties(int device, DeviceProperties* out) override {
    typename PropertiesOf<decltype(t_->getProperties)>::Type p{};
    const int result = t_->getProperties(device, &p);
    if (result == kSuccess) *out = to_properties(p);
    return result;
  }
  int listen(void* context, int device, void* handle, void** listen_comm) override {
    if constexpr (kVersion >= 11)
      return t_->listen(context, device, handle, listen_comm);
    else
      return t_->listen(device, handle, listen_comm);
  }
  int connect(void* context, int device, void* handle, void** comm) override {
    abi::NetDevHandle* device_handle = nullptr;
    if constexpr (kVersion >= 11) {
      return t_->connect(context, device, handle, comm, &device_handle);
    } else if constexpr (kVersion == 10) {
      abi::NetCommConfig config{-1};
      return t_->connect(device, &config, handle, comm, &device_handle);
    } else if constexpr (kVersion >= 7) {
      return t_->connect(device, handle, comm, &device_handle);
    } else {
      return t_->connect(device, handle, comm);
    }
  }
  int accept(void* listen_comm, void** comm) override {
    abi::NetDevHandle* device_handle = nullptr;
    if constexpr (kVersion >= 7)
      return t_->accept(listen_comm, comm, &device_handle);
    else
      return t_->accept(listen_comm, comm);
  }
  int register_memory(void* comm, void* data, std::size_t bytes, void** handle) override {
    if constexpr (kVersion >= 8)
      return t_->regMr(comm, data, bytes, kPointerHost, handle);
    else
      return t_->regMr(comm, data, static_cast<int>(bytes), kPointerHost, handle);
  }
  int deregister_memory(void* comm, void* handle) override { return t_->deregMr(comm, handle); }
  int isend(void* comm, void* data, std::size_t bytes, int tag, void* mr, void** request) override {
    if constexpr (kVersion >= 10)
      return t_->isend(comm, data, bytes, tag, mr, nullptr, request);
    else if constexpr (kVersion == 9)
      return t_->isend(comm, data, bytes, tag, mr, request);
    else
      return t_->isend(comm, data, static_cast<int>(bytes), tag, mr, request);
  }
  int irecv(void* comm, int n, void** data, std::size_t* bytes, int* tags, void** mrs,
            void** request) override {
    if constexpr (kVersion >= 10) {
      void* profiler_handles[kMaxReceives] = {};
      return t_->irecv(comm, n, data, bytes, tags, mrs, profiler_handles, request);
    } else if constexpr (kVersion == 9) {
      return t_->irecv(comm, n, data, bytes, tags, mrs, request);
    } else {
      int sizes[kMaxReceives];
      for (int i = 0; i < n; ++i) sizes[i] = static_cast<int>(bytes[i]);
      return t_->irecv(comm, n, data, sizes, tags, mrs, request);
    }
  }
  int test(void* request, int* done, int* sizes) override { return t_->test(request, done, sizes); }
  int close_send(void* comm) override { return t_->closeSend(comm); }
  int close_recv(void* comm) override { return t_->closeRecv(comm); }
  int close_listen(void* comm) override { return t_->closeListen(comm); }

 private:
  static constexpr int kMaxReceives = 64;
  const Table* t_;
  bool initialised_ = false;
};

template <class Table, int kVersion>
class CollNetAdapter final : public CollNetTable {
 public:
  explicit CollNetAdapter(const Table* table) : t_(table) {}
  const char* name() const override { return t_->name; }
  int init(std::uint64_t comm_id, void** context) override {
    if constexpr (kVersion >= 11) {
      return t_->init(context, comm_id, log_from_plugin);
    } else {
      *context = nullptr;
      if (initialised_) return kSuccess;
      const int result = t_->init(log_from_plugin);
      initialised_ = result == kSuccess;
      return result;
    }
  }
  int finalize(void* context) override {
    if constexpr (kVersion >= 11) return t_->finalize(context);
    return kSuccess;
  }
  int devices(int* count) override { return t_->devices(count); }
  int properties(int device, DeviceProperties* out) override {
    typename PropertiesOf<decltype(t_->getProperties)>::Type p{};
    const int result = t_->getProperties(device, &p);
    if (result == kSuccess) *out = to_properties(p);
    return result;
  }
  int listen(void* context, int device, void* handle, void** listen_comm) override {
    if constexpr (kVersion >= 11)
      return t_->listen(context, device, handle, listen_comm);
    else
      return t_->listen(device, handle, listen_comm);
  }
  int connect(void** handles, int ranks, int rank, void* listen_comm, void** comm) override {
    return t_->connect(handles, ranks, rank, listen_comm, comm);
  }
  int reduce_support(int type, int op, int* supported) override {
    return t_->reduceSupport(type, op, supported);
  }
  int register_memory(void* comm, void* data, std::size_t bytes, void** handle) override {
    if constexpr (kVersion >= 8)
      return t_->regMr(comm, data, bytes, kPointerHost, handle);
    else
      return t_->regMr(comm, data, static_cast<int>(bytes), kPointerHost, handle);
  }
  int deregister_memory(void* comm, void* handle) override { return t_->deregMr(comm, handle); }
  int iallreduce(void* comm, void* send, void* recv, std::size_t count, int type, int op,
                 void* send_mr, void* recv_mr, void** request) override {
    if constexpr (kVersion >= 9) {
      return t_->iallreduce(comm, send, recv, count, type, op, send_mr, recv_mr, request);
    } else {
      return t_->iallreduce(comm, send, recv, static_cast<int>(count), type, op, send_mr, recv_mr,
                            request);
    }
  }
  int test(void* request, int* done, int* size) override { return t_->test(request, done, size); }
  int close_coll(void* comm) override { return t_->closeColl(comm); }
  int close_listen(void* comm) override { return t_->closeListen(comm); }

 private:
  const Table* t_;
  bool initialised_ = false;
};

// Versions 3 and later: those that work on a cost table.
template <class Table, int kVersion>
class TunerAdapter final : public TunerTable {
 public:
  explicit TunerAdapter(const Table* table) : t_(table) {}
  int init(std::uint64_t comm_id, std::size_t ranks, std::size_t nodes, void** context) override {
    if constexpr (kVersion >= 5) {
      abi::NvlDomainInfo domains{static_cast<int>(nodes), 1, 1};
      static abi::TunerConstants constants{};
      return t_->init(context, comm_id, ranks, nodes, log_from_plugin, &domains, &constants);
    } else {
      return t_->init(ranks, nodes, log_from_plugin, context);
    }
  }
  int choose(void* context, int function, std::size_t bytes, int pipelined_ops,
             float (*costs)[kProtocols], int* channels) override {
    float** table = reinterpret_cast<float**>(costs);  // declared so, but dense (contract 10.1)
    if constexpr (kVersion >= 4) {
      return t_->getCollInfo(context, function, bytes, pipelined_ops, table, kAlgorithms,
                             kProtocols, 0, channels);
    } else {
      return t_->getCollInfo(context, function, bytes, pipelined_ops, table, kAlgorithms,
                             kProtocols, channels);
    }
  }
  int finalize(void* context) override {
    if constexpr (kVersion >= 5)
      return t_->finalize(context);
    else
      return t_->destroy(context);
  }

 private:
  const Table* t_;
};

// Versions 4 and later: those whose NCCL has events of CollNet's ProxyOps. v4 has no API events.
template <class Table, class Event, class State, int kVersion>
class ProfilerAdapter final : public ProfilerTable {
 public:
  explicit ProfilerAdapter(const Table* table) : t_(table) {}
  int init(std::uint64_t comm_id, int ranks, int rank, int* mask, void** context) override {
    if constexpr (kVersion >= 5) {
      return t_->init(context, comm_id, mask, nullptr, ranks, ranks, rank, log_from_plugin);
    } else {
      return t_->init(context, mask, nullptr, comm_id, ranks, ranks, rank, log_from_plugin);
    }
  }
  int start(void* context, const ProfilerEvent& event, void** handle) override {
    Event e{};
    e.type = static_cast<decltype(e.type)>(event.type);
    e.parentObj = event.parent;
    if (event.type == abi::kProfileColl) {
      e.coll.seqNumber = event.sequence;
      e.coll.func = event.function;
      e.coll.algo = event.algorithm;
      e.coll.proto = "SIMPLE";
      e.coll.datatype = event.datatype;
      e.coll.sendBuff = event.send;
      e.coll.recvBuff = event.receive;
      e.coll.count = event.count;
    } else if (event.type == abi::kProfileProxyOp) {
      e.proxyOp.pid = getpid();
      e.proxyOp.channelId = static_cast<std::uint8_t>(event.channel);
      e.proxyOp.peer = event.peer;
      e.proxyOp.nSteps = event.steps;
      e.proxyOp.chunkSize = event.chunk_bytes;
    } else if (event.type >= abi::kProfileGroupApi) {
      if constexpr (kVersion < 5) {
        return kSuccess;
      } else if (event.type == abi::kProfileCollApi) {
        e.collApi.graphCaptured = event.is_captured;
      } else {
        e.groupApi.graphCaptured = event.is_captured;
      }
    }
    return t_->startEvent(context, handle, &e);
  }
  int stop(void* handle) override { return t_->stopEvent(handle); }
  int record_state(void* handle, int state) override {
    State none{};
    return t_->recordEventState(handle, state, &none);
  }
  int finalize(void* context) override { return t_->finalize(context); }

 private:
  const Table* t_;
};

}  // namespace riffle::host
