// How NCCL cuts collectives over channels and chunks (its enqueue.cc, ncclPrepareTasks,
// scheduleCollTasksToPlan and calcCollChunking, for the Simple protocol).
//
// Pure: the same input gives the same schedule on every rank. The collectives of a group come out
// in NCCL's order, smallest first within a kind and CollNet last; algorithms are chosen per
// aggregate.
#pragma once

#include <functional>
#include <vector>

#include "lab/nccl_host/work/cost_model.h"
#include "lab/nccl_host/work/program.h"

namespace riffle::host {

struct Collective {
  Function function = Function::kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;  // elements; per rank for all-gather and reduce-scatter
  DataType type = DataType::kFloat32;
  Op op = Op::kSum;
  int root = 0;
};

// Two releases cut ring and tree work differently over channels; everything else is alike.
enum class Release { k2_28, k2_30 };

struct Layout {
  int ranks = 2;
  int channels = 2;
  std::size_t buffer_bytes = std::size_t{4} << 20;
  Release release = Release::k2_30;
};

struct Scheduled {
  Collective what;
  Algorithm algorithm = Algorithm::kRing;
  int first_channel = 0;
  std::vector<Part> parts;  // ring and tree: one per channel from first_channel on
  int channels = 0;         // CollNet: 0 .. channels - 1
  std::size_t chunk_bytes = 0;
};

// Asked once per aggregate: function, bytes and collectives per channel.
using Chooser = std::function<Algorithm(const Collective& like, std::size_t bytes, int pipelined)>;

std::vector<Scheduled> schedule(std::vector<Collective> group, const Layout& layout,
                                const Chooser& choose);

Steps steps_of(Function function, Algorithm algorithm);
std::size_t larger_buffer_bytes(const Collective& c, int ranks);  // what tuners are told

}  // namespace riffle::host
