// PROFILER: event descriptors v1 to v6, valid only during the call that passes them. Parts that did
// not change from one version to the next are declared once and shared.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle::abi {

struct ProxyOpEvent {
  std::int32_t pid;
  std::uint8_t channelId;
  int peer;
  int nSteps;
  int chunkSize;
  int isSend;
};

struct ProxyStepEvent {
  int step;
};

struct NetPluginEvent {
  std::int64_t id;
  void* data;
};

struct KernelChEventV3 {
  std::uint8_t channelId;
};

struct KernelChEventV4 {
  std::uint8_t channelId;
  std::uint64_t pTimer;
};

struct CollEventV1 {
  const char* name;
  std::uint64_t commHash;
  std::uint64_t seqNumber;
  std::uint8_t func;
  const void* sendBuff;
  void* recvBuff;
  std::size_t count;
  int root;
  std::uint8_t datatype;
  std::uint32_t op;
  std::size_t trafficBytes;
  std::uint8_t nMaxChannels;
  std::uint8_t nWarps;
  std::uint8_t algo;
  std::uint8_t proto;
  int isCollnet;
  int isNvls;
};

struct CollEventV2 {  // func, datatype, algo, proto become strings; op and flags go
  const char* name;
  std::uint64_t commHash;
  std::uint64_t seqNumber;
  const char* func;
  const void* sendBuff;
  void* recvBuff;
  std::size_t count;
  int root;
  const char* datatype;
  std::size_t trafficBytes;
  std::uint8_t nMaxChannels;
  std::uint8_t nWarps;
  const char* algo;
  const char* proto;
};

struct CollEventV3 {  // no trafficBytes
  const char* name;
  std::uint64_t commHash;
  std::uint64_t seqNumber;
  const char* func;
  const void* sendBuff;
  void* recvBuff;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t nMaxChannels;
  std::uint8_t nWarps;
  const char* algo;
  const char* proto;
};

struct CollEventV4 {  // name and commHash move to init; nChannels
  std::uint64_t seqNumber;
  const char* func;
  const void* sendBuff;
  void* recvBuff;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t nChannels;
  std::uint8_t nWarps;
  const char* algo;
  const char* proto;
};

struct CollEventV5 {  // + parentGroup
  std::uint64_t seqNumber;
  const char* func;
  const void* sendBuff;
  void* recvBuff;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t nChannels;
  std::uint8_t nWarps;
  const char* algo;
  const char* proto;
  void* parentGroup;
};

struct P2pEventV1 {
  const char* name;
  std::uint64_t commHash;
  std::uint8_t func;
  void* buff;
  std::uint8_t datatype;
  std::size_t count;
  int peer;
};

struct P2pEventV2 {
  const char* name;
  std::uint64_t commHash;
  const char* func;
  void* buff;
  const char* datatype;
  std::size_t count;
  int peer;
};

struct P2pEventV4 {
  const char* func;
  void* buff;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t nChannels;
};

struct P2pEventV5 {
  const char* func;
  void* buff;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t nChannels;
  void* parentGroup;
};

struct GroupApiEvent {
  bool graphCaptured;
  int groupDepth;
};

struct CollApiEvent {
  const char* func;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graphCaptured;
};

struct P2pApiEvent {
  const char* func;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool graphCaptured;
};

struct KernelLaunchEvent {
  void* stream;
};

struct CeCollEvent {  // collectives of the copy engines
  std::uint64_t seqNumber;
  const char* func;
  const void* sendBuff;
  void* recvBuff;
  std::size_t count;
  int root;
  const char* datatype;
  const char* syncStrategy;
  bool intraBatchSync;
  std::uint32_t batchSize;
  std::uint32_t numBatches;
  std::uint32_t ceSeqNum;
  void* stream;
};

struct CeCollSyncEvent {
  bool isComplete;
  int nRanks;
};

struct CeCollBatchEvent {
  int numOps;
  std::size_t totalBytes;
  bool useIntraSync;
};

struct ProfilerEventV1 {  // 120
  std::uint8_t type;
  void* parentObj;
  int rank;
  union {
    CollEventV1 coll;
    P2pEventV1 p2p;
    ProxyOpEvent proxyOp;
    ProxyStepEvent proxyStep;
  };
};

struct ProfilerEventV2 {  // 128
  std::uint8_t type;
  void* parentObj;
  int rank;
  union {
    CollEventV2 coll;
    P2pEventV2 p2p;
    ProxyOpEvent proxyOp;
    ProxyStepEvent proxyStep;
  };
};

struct ProfilerEventV3 {  // 120
  std::uint8_t type;
  void* parentObj;
  int rank;
  union {
    CollEventV3 coll;
    P2pEventV2 p2p;
    ProxyOpEvent proxyOp;
    ProxyStepEvent proxyStep;
    KernelChEventV3 kernelCh;
    NetPluginEvent netPlugin;
  };
};

struct ProfilerEventV4 {  // 104
  std::uint8_t type;
  void* parentObj;
  int rank;
  union {
    CollEventV4 coll;
    P2pEventV4 p2p;
    ProxyOpEvent proxyOp;
    ProxyStepEvent proxyStep;
    KernelChEventV4 kernelCh;
    NetPluginEvent netPlugin;
  };
};

struct ProfilerEventV5 {  // 112
  std::uint64_t type;
  void* parentObj;
  int rank;
  union {
    GroupApiEvent groupApi;
    CollApiEvent collApi;
    P2pApiEvent p2pApi;
    KernelLaunchEvent kernelLaunch;
    CollEventV5 coll;
    P2pEventV5 p2p;
    ProxyOpEvent proxyOp;
    ProxyStepEvent proxyStep;
    KernelChEventV4 kernelCh;
    NetPluginEvent netPlugin;
  };
};

struct ProfilerEventV6 {  // 112
  std::uint64_t type;
  void* parentObj;
  int rank;
  union {
    GroupApiEvent groupApi;
    CollApiEvent collApi;
    P2pApiEvent p2pApi;
    KernelLaunchEvent kernelLaunch;
    CollEventV5 coll;
    P2pEventV5 p2p;
    ProxyOpEvent proxyOp;
    ProxyStepEvent proxyStep;
    KernelChEventV4 kernelCh;
    NetPluginEvent netPlugin;
    CeCollEvent ceColl;
    CeCollSyncEvent ceCollSync;
    CeCollBatchEvent ceCollBatch;
  };
};

}  // namespace riffle::abi
