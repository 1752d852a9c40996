// TUNER: every version on the decision of tuner/tuner.h. It always returns success, because NCCL
// fails the communicator or the collective otherwise: what goes wrong here means "no opinion".
//
// v1 and v2 name algorithm and protocol outright, v3 on bend NCCL's cost table. The channel count
// stays NCCL's: a count above the communicator's own crashes NCCL with CollNet, and it is not told.
#include "plugin/abi/tuner.h"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "plugin/abi/constants.h"
#include "plugin/collective/base/collective_count.h"
#include "plugin/entry/border.h"
#include "plugin/entry/context.h"
#include "plugin/entry/options.h"
#include "plugin/identity/known_lengths.h"
#include "plugin/tuner/tuner.h"

namespace riffle::entry::tuner {
namespace {

struct Context {
  TunerSettings settings;
  std::size_t nodes = 0;
  std::shared_ptr<agreement::Publication> publication;
  std::shared_ptr<known_lengths::Nodes> lengths;  // null: the limit stays as it is

  TunerSettings now() const {
    TunerSettings s = settings;
    const bool has_fallen =
        lengths && static_cast<std::size_t>(lengths->load(std::memory_order_acquire)) == nodes;
    if (has_fallen) s.min_bytes = 0;
    return s;
  }
};

void start(void** context, std::uint64_t comm_id, std::size_t ranks, std::size_t nodes,
           abi::LogFn log) {
  *context = nullptr;
  (void)guard("TUNER init", [&] {
    if (are_collectives_left_to_nccl(log)) return Status::ok();  // no context, no opinion
    auto made = std::make_unique<Context>();
    made->settings = options().tuner;
    made->nodes = nodes;
    if (made->settings.falls && ranks == nodes) made->lengths = known_lengths::of(comm_id);
    // Also done by NET's init, but communicators that share another's resources have only this one.
    made->publication = publish_knobs(comm_id);
    *context = made.release();
    return Status::ok();
  });
}

// v1 has no context; its collNetSupport alone tells that there are several nodes.
abi::NcclResult init(std::size_t, std::size_t, abi::LogFn log) {
  (void)guard("TUNER init", [&] {
    (void)are_collectives_left_to_nccl(log);
    return Status::ok();
  });
  return abi::kSuccess;
}

abi::NcclResult init(std::size_t ranks, std::size_t nodes, abi::LogFn log, void** context) {
  start(context, 0, ranks, nodes, log);
  return abi::kSuccess;
}

abi::NcclResult init(void** context, std::uint64_t comm_id, std::size_t ranks, std::size_t nodes,
                     abi::LogFn log, abi::NvlDomainInfo*, abi::TunerConstants*) {
  start(context, comm_id, ranks, nodes, log);
  return abi::kSuccess;
}

// v1, v2. Below the threshold NCCL decides: naming a ring would mean naming its protocol too, whose
// costs these versions do not tell.
void name_algorithm(const TunerSettings& settings, std::size_t nodes, abi::NcclFunc function,
                    std::size_t bytes, int collnet_support, int* algorithm, int* protocol) {
  if (collnet_support == 0) return;
  if (choose_way(settings, nodes, function, bytes) != Way::kGroupPlan) return;
  count_collective();
  *algorithm = abi::kAlgoCollNetChain;
  *protocol = abi::kProtoSimple;
}

abi::NcclResult get_coll_info(abi::NcclFunc function, std::size_t bytes, int collnet_support, int,
                              int, int* algorithm, int* protocol, int*) {
  (void)guard("TUNER getCollInfo", [&] {
    constexpr std::size_t kSeveralNodes = 2;
    if (!options().has_collectives) return Status::ok();
    name_algorithm(options().tuner, kSeveralNodes, function, bytes, collnet_support, algorithm,
                   protocol);
    return Status::ok();
  });
  return abi::kSuccess;
}

abi::NcclResult get_coll_info(void* context, abi::NcclFunc function, std::size_t bytes,
                              int collnet_support, int, int, int* algorithm, int* protocol, int*) {
  if (context == nullptr) return abi::kSuccess;
  const Context& c = *static_cast<const Context*>(context);
  name_algorithm(c.settings, c.nodes, function, bytes, collnet_support, algorithm, protocol);
  return abi::kSuccess;
}

abi::NcclResult get_coll_info(void* context, abi::NcclFunc function, std::size_t bytes, int,
                              float** cost_table, int algorithms, int protocols, int*) {
  if (context == nullptr) return abi::kSuccess;
  const Context& c = *static_cast<const Context*>(context);
  // Declared float**, but the address of a dense block.
  const CostTable table{reinterpret_cast<float*>(cost_table), algorithms, protocols};
  const Way way = choose_way(c.now(), c.nodes, function, bytes);
  if (steer(way, table) && way == Way::kGroupPlan) count_collective();
  return abi::kSuccess;
}

abi::NcclResult get_coll_info(void* context, abi::NcclFunc function, std::size_t bytes,
                              int pipelined, float** cost_table, int algorithms, int protocols, int,
                              int* channels) {
  return get_coll_info(context, function, bytes, pipelined, cost_table, algorithms, protocols,
                       channels);
}

abi::NcclResult finalize() { return abi::kSuccess; }

abi::NcclResult finalize(void* context) {
  (void)guard("TUNER finalize", [&] {
    delete static_cast<Context*>(context);
    return Status::ok();
  });
  return abi::kSuccess;
}

// NCCL's chunk size suits the engine, which cuts operations into its own chunks.
abi::NcclResult get_chunk_size(void*, abi::NcclFunc, std::size_t, int, int, int, std::size_t*) {
  return abi::kSuccess;
}

template <class Table>
constexpr Table make_table() {
  Table table{};
  table.name = kPluginName;
  table.init = init;
  table.getCollInfo = get_coll_info;
  if constexpr (requires { table.destroy; }) table.destroy = finalize;
  if constexpr (requires { table.finalize; }) table.finalize = finalize;
  if constexpr (requires { table.getChunkSize; }) table.getChunkSize = get_chunk_size;
  return table;
}

}  // namespace
}  // namespace riffle::entry::tuner

#define RIFFLE_TUNER(version)                                            \
  RIFFLE_TABLE riffle::abi::TunerV##version ncclTunerPlugin_v##version = \
      riffle::entry::tuner::make_table<riffle::abi::TunerV##version>();
RIFFLE_TUNER(1)
RIFFLE_TUNER(2)
RIFFLE_TUNER(3)
RIFFLE_TUNER(4)
RIFFLE_TUNER(5)
RIFFLE_TUNER(6)
