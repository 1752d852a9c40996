// TUNER: the tables v1 to v6.
//
// costTable is declared float** but is a dense float[numAlgo][numProto] (microseconds, -1 = not
// available); nChannels 0 means "no wish"; chunkSize is in and out, in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugin/abi/common.h"
#include "plugin/abi/constants.h"

namespace riffle::abi {

struct TunerV1 {  // 32
  const char* name;
  NcclResult (*init)(std::size_t nRanks, std::size_t nNodes, LogFn);
  NcclResult (*getCollInfo)(NcclFunc, std::size_t nBytes, int collNetSupport, int nvlsSupport,
                            int numPipeOps, int* algorithm, int* protocol, int* nChannels);
  NcclResult (*destroy)();
};

struct TunerV2 {  // 32: context
  const char* name;
  NcclResult (*init)(std::size_t nRanks, std::size_t nNodes, LogFn, void** context);
  NcclResult (*getCollInfo)(void* context, NcclFunc, std::size_t nBytes, int collNetSupport,
                            int nvlsSupport, int numPipeOps, int* algorithm, int* protocol,
                            int* nChannels);
  NcclResult (*destroy)(void* context);
};

struct TunerV3 {  // 32: cost table
  const char* name;
  NcclResult (*init)(std::size_t nRanks, std::size_t nNodes, LogFn, void** context);
  NcclResult (*getCollInfo)(void* context, NcclFunc, std::size_t nBytes, int numPipeOps,
                            float** costTable, int numAlgo, int numProto, int* nChannels);
  NcclResult (*destroy)(void* context);
};

struct TunerV4 {  // 32: + regBuff
  const char* name;
  NcclResult (*init)(std::size_t nRanks, std::size_t nNodes, LogFn, void** context);
  NcclResult (*getCollInfo)(void* context, NcclFunc, std::size_t nBytes, int numPipeOps,
                            float** costTable, int numAlgo, int numProto, int regBuff,
                            int* nChannels);
  NcclResult (*destroy)(void* context);
};

struct NvlDomainInfo {
  int nNvlDomains;
  int minRanksPerNvlDomain;
  int maxRanksPerNvlDomain;
};                       // 12; v5, v6
struct TunerConstants {  // 1152; v5, v6
  double baseLatencies[kNumAlgorithms][kNumProtocols];
  double hwLatencies[kNumHwLinks][kNumAlgorithms][kNumProtocols];
  double llMaxBws[kNumCompCaps][kNumTuningScales];
  double perChMaxRingLL128Bws[kNumCompCaps][kNumTuningScales];
  double perChMaxTreeLL128Bws[kNumCompCaps][kNumTuningScales];
  double perChMaxTreeBws[kNumCompCaps][kNumTuningScales];
  double perChMaxNVLSTreeBws[kNumCompCaps][kNumTuningScales];
};

struct TunerV5 {  // 32: commId, domain info, constants; destroy renamed finalize
  const char* name;
  NcclResult (*init)(void** context, std::uint64_t commId, std::size_t nRanks, std::size_t nNodes,
                     LogFn, NvlDomainInfo*, TunerConstants*);
  NcclResult (*getCollInfo)(void* context, NcclFunc, std::size_t nBytes, int numPipeOps,
                            float** costTable, int numAlgo, int numProto, int regBuff,
                            int* nChannels);
  NcclResult (*finalize)(void* context);
};

struct TunerV6 {  // 40: + getChunkSize
  const char* name;
  NcclResult (*init)(void** context, std::uint64_t commId, std::size_t nRanks, std::size_t nNodes,
                     LogFn, NvlDomainInfo*, TunerConstants*);
  NcclResult (*getCollInfo)(void* context, NcclFunc, std::size_t nBytes, int numPipeOps,
                            float** costTable, int numAlgo, int numProto, int regBuff,
                            int* nChannels);
  NcclResult (*finalize)(void* context);
  NcclResult (*getChunkSize)(void* context, NcclFunc, std::size_t nBytes, int algo, int proto,
                             int nChannels, std::size_t* chunkSize);
};

}  // namespace riffle::abi
