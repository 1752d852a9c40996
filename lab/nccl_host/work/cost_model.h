// NCCL's predicted times for collectives between single-GPU nodes, as its tuner plugin sees them
// (graph/tuning.cc of 2.28 and 2.30 with its constants for a PCI machine): microseconds per
// [algorithm][protocol], -1 = not available. The recorded tables in lab/nccl_host/traces are
// reproduced to 0.1 %; test/nccl_host/cost_model_test.cc checks it.
#pragma once

#include <cstddef>

#include "lab/nccl_host/tables/plugin_tables.h"

namespace riffle::host {

enum class Function {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  kSend = 6,
  kReceive = 7
};
enum class Algorithm { kTree = 0, kRing = 1, kCollNetChain = 3 };

struct CostModel {
  int ranks = 2;
  int channels = 2;
  double network_gbs = 1.2;  // of all channels together, GB/s
  bool collnet = false;      // its connections exist and the operator is supported
};

// bytes: of the larger of the send and receive buffers. Only the Simple protocol is filled.
void predict(const CostModel& model, Function function, std::size_t bytes,
             float (*table)[kProtocols]);

// The cheapest available entry; ties go to the lowest index, 0 always wins.
Algorithm cheapest(const float (*table)[kProtocols]);

// NCCL's graph search works with a short table of rates: the largest that the NIC carries, GB/s.
double network_rate_gbs(int speed_mbps);

}  // namespace riffle::host
