// The plugin's tables as NCCL's host side sees them, whatever their version.
//
// NCCL wraps older tables into the newest one and then only knows that; these classes do the same,
// so that the patterns above them are written once. Return values are NCCL's result codes (0 =
// success): they are the plugin's answers, to be judged by the caller, not our Statuses. Which
// thread may call what is the plugin contract's business (docs/nccl-contract.md), not ours: nothing
// here is locked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace riffle::host {

inline constexpr int kSuccess = 0;
inline constexpr std::size_t kHandleBytes = 128;
inline constexpr int kPointerHost = 1;
inline constexpr int kAlgorithms = 7;  // rows of the cost table: Tree, Ring, CollNetDirect, ...
inline constexpr int kProtocols = 3;

struct DeviceProperties {
  std::string name;
  std::string pci_path;  // empty where the plugin gives none
  std::uint64_t guid = 0;
  int pointer_types = 0;
  int speed_mbps = 0;
  int port = 0;
  float latency_us = 0;
  int max_comms = 0;
  int max_receives = 1;
  std::size_t max_p2p_bytes = std::size_t{1} << 30;  // NCCL's values for tables without them
  std::size_t max_coll_bytes = std::size_t{1} << 29;
};

class NetTable {
 public:
  virtual ~NetTable() = default;
  virtual const char* name() const = 0;
  // Versions up to 10 have no context: their init runs once per process, as in NCCL 2.28+.
  virtual int init(std::uint64_t comm_id, void** context) = 0;
  virtual int finalize(void* context) = 0;
  virtual int devices(int* count) = 0;
  virtual int properties(int device, DeviceProperties* out) = 0;
  virtual int listen(void* context, int device, void* handle, void** listen_comm) = 0;
  // Success with a null output means: ask again (also for accept).
  virtual int connect(void* context, int device, void* handle, void** send_comm) = 0;
  virtual int accept(void* listen_comm, void** recv_comm) = 0;
  virtual int register_memory(void* comm, void* data, std::size_t bytes, void** handle) = 0;
  virtual int deregister_memory(void* comm, void* handle) = 0;
  // Success with a null request means: offer it again.
  virtual int isend(void* comm, void* data, std::size_t bytes, int tag, void* mr,
                    void** request) = 0;
  virtual int irecv(void* comm, int n, void** data, std::size_t* bytes, int* tags, void** mrs,
                    void** request) = 0;
  virtual int test(void* request, int* done, int* sizes) = 0;
  virtual int close_send(void* comm) = 0;
  virtual int close_recv(void* comm) = 0;
  virtual int close_listen(void* comm) = 0;
};

class CollNetTable {
 public:
  virtual ~CollNetTable() = default;
  virtual const char* name() const = 0;
  virtual int init(std::uint64_t comm_id, void** context) = 0;
  virtual int finalize(void* context) = 0;
  virtual int devices(int* count) = 0;
  virtual int properties(int device, DeviceProperties* out) = 0;
  virtual int listen(void* context, int device, void* handle, void** listen_comm) = 0;
  virtual int connect(void** handles, int ranks, int rank, void* listen_comm, void** comm) = 0;
  virtual int reduce_support(int type, int op, int* supported) = 0;
  virtual int register_memory(void* comm, void* data, std::size_t bytes, void** handle) = 0;
  virtual int deregister_memory(void* comm, void* handle) = 0;
  virtual int iallreduce(void* comm, void* send, void* recv, std::size_t count, int type, int op,
                         void* send_mr, void* recv_mr, void** request) = 0;
  virtual int test(void* request, int* done, int* size) = 0;
  virtual int close_coll(void* comm) = 0;
  virtual int close_listen(void* comm) = 0;
};

// What a communicator tells its tuner, and asks it for every collective (or group of them).
class TunerTable {
 public:
  virtual ~TunerTable() = default;
  virtual int init(std::uint64_t comm_id, std::size_t ranks, std::size_t nodes, void** context) = 0;
  // costs: microseconds per [algorithm][protocol], -1 = not available; changed in place.
  virtual int choose(void* context, int function, std::size_t bytes, int pipelined_ops,
                     float (*costs)[kProtocols], int* channels) = 0;
  virtual int finalize(void* context) = 0;
};

// One of the events that the profiler is told of; what does not belong to its type is left alone.
struct ProfilerEvent {
  int type = 0;  // plugin/abi/constants.h
  void* parent = nullptr;
  bool is_captured = false;  // GroupApi, CollApi
  // Coll
  std::uint64_t sequence = 0;
  const char* function = nullptr;
  const char* algorithm = nullptr;
  const char* datatype = nullptr;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  // ProxyOp
  int channel = 0, peer = 0, steps = 0, chunk_bytes = 0;
};

class ProfilerTable {
 public:
  virtual ~ProfilerTable() = default;
  virtual int init(std::uint64_t comm_id, int ranks, int rank, int* mask, void** context) = 0;
  virtual int start(void* context, const ProfilerEvent& event, void** handle) = 0;
  virtual int stop(void* handle) = 0;
  virtual int record_state(void* handle, int state) = 0;
  virtual int finalize(void* context) = 0;
};

}  // namespace riffle::host
