// NET and COLLNET: device property records and small helpers, v5 to v12.
//
// Members keep NCCL's names, here and in the other records of this folder, so that test/abi can
// compare each of them with the golden layout by name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle::abi {

struct NetPropsV5 {  // 48; v6 identical
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
};

using NetPropsV6 = NetPropsV5;

struct NetPropsV7 {  // 56
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

struct NetPropsV8 {  // 64: regIsGlobal slips in before speed
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

struct NetVPropsV9 {
  int ndevs;
  int devs[4];
};                   // 20; v10, v11 identical
struct NetPropsV9 {  // 104; v10 identical
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  NetVPropsV9 vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
};

using NetPropsV10 = NetPropsV9;
using NetVPropsV10 = NetVPropsV9;
struct NetPropsV11 {  // 112
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  NetVPropsV9 vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
  int maxMultiRequestSize;
};

using NetVPropsV11 = NetVPropsV9;

struct NetVPropsV12 {
  int ndevs;
  int devs[8];
};                    // 36
struct NetPropsV12 {  // 128
  char* name;
  char* pciPath;
  std::uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  NetVPropsV12 vProps;
  std::size_t maxP2pBytes;
  std::size_t maxCollBytes;
  int maxMultiRequestSize;
  std::int16_t railId;
  std::int16_t planeId;
};

struct NetDevHandle {  // 32; v7..v12 identical
  int netDeviceType;
  int netDeviceVersion;
  void* handle;
  std::size_t size;
  int needsProxyProgress;
};

struct NetCommConfig {
  int trafficClass;
};                    // 4; v10..v12 identical
struct NetCommAttr {  // 16; v11, v12
  std::int32_t maxConcurrentPeers;
  std::int32_t minConcurrentPeers;
  std::int32_t maxFlowsPerPeer;
  std::int32_t minFlowsPerPeer;
};

struct NetAttr {  // 44; v11, v12
  NetCommAttr sendCommAttr;
  NetCommAttr recvCommAttr;
  std::uint32_t op;
  std::uint32_t algo;
  std::uint32_t proto;
};

}  // namespace riffle::abi
