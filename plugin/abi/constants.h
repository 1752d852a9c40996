// The numbers of NCCL's plugin ABI that plugins see, by group; test/abi holds each against the
// golden list. A count that grew over the releases has its newest value.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle::abi {

// A plugin returns 0 to 6 only: NCCL uses 7 itself for "work pending", and knows 8 from 2.30 on.
enum ResultCode : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,
  kNumResults = 9,
};

// Data types (0..11) and operators (0..3) are in plugin/kernels/types.h.
inline constexpr int kNumDataTypes = 12;
inline constexpr int kRedOpAvg = 4;  // NCCL sends averages to the network as sums
inline constexpr int kNumRedOps = 5;

enum Function : int {
  kFuncBroadcast = 0,
  kFuncReduce = 1,
  kFuncAllGather = 2,
  kFuncReduceScatter = 3,
  kFuncAllReduce = 4,
  kFuncSendRecv = 5,
  kFuncSend = 6,
  kFuncRecv = 7,
  kFuncAlltoAll = 8,
  kFuncScatter = 9,
  kFuncGather = 10,
  kFuncAllGatherV = 11,
  kFuncPutSignal = 12,
  kFuncSignal = 13,
  kFuncWaitSignal = 14,
  kNumFuncs = 15,
};

enum Algorithm : int {
  kAlgoUndefined = -1,
  kAlgoTree = 0,
  kAlgoRing = 1,
  kAlgoCollNetDirect = 2,
  kAlgoCollNetChain = 3,
  kAlgoNvls = 4,
  kAlgoNvlsTree = 5,
  kAlgoPat = 6,
  kNumAlgorithms = 7,
};

enum Protocol : int {
  kProtoUndefined = -1,
  kProtoLl = 0,
  kProtoLl128 = 1,
  kProtoSimple = 2,
  kNumProtocols = 3,
};

enum LogLevelCode : int {
  kLogNone = 0,
  kLogVersion = 1,
  kLogWarn = 2,
  kLogInfo = 3,
  kLogAbort = 4,
  kLogTrace = 5,
};

enum LogSubsystem : unsigned long {
  kSubsysInit = 1,
  kSubsysColl = 2,
  kSubsysP2p = 4,
  kSubsysShm = 8,
  kSubsysNet = 16,
  kSubsysGraph = 32,
  kSubsysTuning = 64,
  kSubsysEnv = 128,
  kSubsysAlloc = 256,
  kSubsysCall = 512,
  kSubsysProxy = 1024,
  kSubsysNvls = 2048,
  kSubsysBootstrap = 4096,
  kSubsysReg = 8192,
  kSubsysProfile = 16384,
  kSubsysRas = 32768,
  kSubsysDestroy = 65536,
  kSubsysAllocHost = 131072,
  kSubsysAll = ~0UL,
};

// NET and COLLNET
inline constexpr int kNetHandleBytes = 128;
inline constexpr int kNetMaxRequests = 32;  // 8 up to 2.18
inline constexpr std::size_t kMaxNetSizeBytes = std::size_t{1} << 40;
inline constexpr std::size_t kDefaultMaxP2pBytes = std::size_t{1} << 30;
inline constexpr std::size_t kDefaultMaxCollBytes = std::size_t{1} << 29;
inline constexpr std::uintptr_t kOptionalRecvCompletion = 1;  // preloaded into *request of an irecv
inline constexpr int kMultiRequest = 2;
inline constexpr int kMaxDevsPerNicV9 = 4;  // v10 and v11 alike
inline constexpr int kMaxDevsPerNicV12 = 8;
inline constexpr int kTrafficClassUndefined = -1;
inline constexpr int kNetAttrUndefined = -1;
inline constexpr int kNetIdUndefined = -1;  // rail and plane
enum PointerType : int { kPtrHost = 1, kPtrCuda = 2, kPtrDmaBuf = 4 };
enum NetDeviceType : int { kDeviceHost = 0, kDeviceUnpack = 1 };
inline constexpr int kDeviceVersionInvalid = 0;
inline constexpr int kDeviceVersionUnpack = 7;

// TUNER
inline constexpr float kCostIgnore = -1.0f;
inline constexpr int kNumHwLinks = 3;       // NVLink, PCI, network
inline constexpr int kNumCompCaps = 4;      // Volta, Ampere, Hopper, Blackwell
inline constexpr int kNumTuningScales = 3;  // 1, 2, 4 and more nodes

// PROFILER: event types (bits of the activation mask)
enum ProfilerEventType : int {
  kProfileGroup = 1,
  kProfileColl = 2,
  kProfileP2p = 4,
  kProfileProxyOp = 8,
  kProfileProxyStep = 16,
  kProfileProxyCtrl = 32,
  kProfileKernelCh = 64,
  kProfileNetPlugin = 128,
  kProfileGroupApi = 256,
  kProfileCollApi = 512,
  kProfileP2pApi = 1024,
  kProfileKernelLaunch = 2048,
  kProfileCeColl = 4096,
  kProfileCeSync = 8192,
  kProfileCeBatch = 16384,
};

enum ProfilerEventState : int {
  kProxyOpSendPosted = 0,
  kProxyOpSendRemFifoWait = 1,
  kProxyOpSendTransmitted = 2,
  kProxyOpSendDone = 3,
  kProxyOpRecvPosted = 4,
  kProxyOpRecvReceived = 5,
  kProxyOpRecvTransmitted = 6,
  kProxyOpRecvDone = 7,
  kProxyStepSendGpuWait = 8,
  kProxyStepSendWait = 9,
  kProxyStepRecvWait = 10,
  kProxyStepRecvFlushWait = 11,
  kProxyStepRecvGpuWait = 12,
  kProxyCtrlIdle = 13,
  kProxyCtrlActive = 14,
  kProxyCtrlSleep = 15,
  kProxyCtrlWakeup = 16,
  kProxyCtrlAppend = 17,
  kProxyCtrlAppendEnd = 18,
  kProxyOpInProgress = 19,
  kProxyStepSendPeerWait = 20,
  kNetPluginUpdate = 21,
  kKernelChStop = 22,
  kGroupStartApiStop = 23,
  kGroupEndApiStart = 24,
  kCeCollStart = 25,
  kCeCollComplete = 26,
  kCeSyncStart = 27,
  kCeSyncComplete = 28,
  kCeBatchStart = 29,
  kCeBatchComplete = 30,
};

// The callback that NET v10+ gets: event kinds, and the layout of its plugin id.
enum ProfilerNetEvent : int {
  kNetEventStart = 0,
  kNetEventStop = 1,
  kNetEventUpdate = 2,
  kNetEventUpdateAndStop = 3,
};
inline constexpr int kProfilerNetVersionBits = 16;
inline constexpr std::int64_t kProfilerNetVersionMask = 0xffff;
inline constexpr std::int64_t kProfilerNetTypeMask = 0xffff0000;
inline constexpr std::int64_t kProfilerNetTypeIb = 1 << 16;      // taken by NCCL itself
inline constexpr std::int64_t kProfilerNetTypeSocket = 2 << 16;  // likewise

}  // namespace riffle::abi
