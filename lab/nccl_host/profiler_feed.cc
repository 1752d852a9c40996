#include "lab/nccl_host/profiler_feed.h"

#include <atomic>
#include <iterator>

#include "plugin/abi/constants.h"

namespace riffle::host {
namespace {

// One for all communicators of a process, as in NCCL.
int mask = 0;

const char* name_of_function(Function f) {
  switch (f) {
    case Function::kAllReduce:
      return "AllReduce";
    case Function::kAllGather:
      return "AllGather";
    case Function::kReduceScatter:
      return "ReduceScatter";
    case Function::kBroadcast:
      return "Broadcast";
    default:
      return "Reduce";
  }
}

// NCCL's ncclDatatypeToString knows no ncclUint8.
constexpr const char* kTypeNames[] = {"ncclInt8",    "Unknown",     "ncclInt32",   "ncclUint32",
                                      "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                      "ncclFloat64", "ncclBfloat16"};

const char* name_of_type(DataType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < std::size(kTypeNames) ? kTypeNames[index] : "Unknown";
}

}  // namespace

ProfilerFeed::ProfilerFeed(ProfilerTable* table, std::uint64_t comm_id, int ranks, int rank)
    : table_(table) {
  if (table_ != nullptr && table_->init(comm_id, ranks, rank, &mask, &context_) != kSuccess) {
    table_ = nullptr;
  }
}

bool ProfilerFeed::wants(int types) const {
  return table_ != nullptr &&
         (std::atomic_ref<int>(mask).load(std::memory_order_relaxed) & types) != 0;
}

void ProfilerFeed::launched(const Scheduled& s, const Layout& layout,
                            std::vector<ProfilerEvent>* proxy_ops) {
  if (s.what.count == 0) return;  // NCCL returns at once
  const std::uint64_t sequence = sequences_[s.what.function]++;
  if (!wants(abi::kProfileColl | abi::kProfileProxyOp)) return;
  ProfilerEvent api;
  api.type = abi::kProfileCollApi;
  void* api_handle = nullptr;
  table_->start(context_, api, &api_handle);
  table_->stop(api_handle);

  const bool is_collnet = s.algorithm == Algorithm::kCollNetChain;
  ProfilerEvent coll;
  coll.type = abi::kProfileColl;
  coll.parent = api_handle;
  coll.sequence = sequence;
  coll.function = name_of_function(s.what.function);
  coll.algorithm = is_collnet ? "COLLNET_CHAIN" : s.algorithm == Algorithm::kTree ? "TREE" : "RING";
  coll.datatype = name_of_type(s.what.type);
  coll.send = s.what.send;
  coll.receive = s.what.receive;
  coll.count = s.what.count;
  void* handle = nullptr;
  table_->start(context_, coll, &handle);
  table_->stop(handle);

  ProfilerEvent op;
  op.type = abi::kProfileProxyOp;
  op.parent = handle;
  if (!is_collnet) {
    op.steps = 1;
    op.chunk_bytes = static_cast<int>(layout.buffer_bytes / 8);
    for (std::size_t i = 0; i < s.parts.size(); ++i) {
      op.channel = s.first_channel + static_cast<int>(i);
      proxy_ops->push_back(op);
    }
    return;
  }
  const std::size_t bytes = s.what.count * size_of(s.what.type);
  const std::size_t loop = s.chunk_bytes * static_cast<std::size_t>(s.channels);
  op.peer = layout.ranks;
  op.steps = static_cast<int>((bytes + loop - 1) / loop);
  op.chunk_bytes = static_cast<int>(s.chunk_bytes);
  for (op.channel = 0; op.channel < s.channels; ++op.channel)
    proxy_ops->insert(proxy_ops->end(), 2, op);
}

void ProfilerFeed::proxy_op(const ProfilerEvent& op) {
  if (!wants(abi::kProfileProxyOp)) return;
  void* handle = nullptr;
  table_->start(context_, op, &handle);
}

void ProfilerFeed::sleeps() {
  if (!wants(abi::kProfileProxyCtrl)) return;
  ProfilerEvent event;
  event.type = abi::kProfileProxyCtrl;
  void* handle = nullptr;
  table_->start(context_, event, &handle);
  table_->record_state(handle, abi::kProxyCtrlSleep);
  table_->stop(handle);
}

void ProfilerFeed::end() {
  if (table_ != nullptr && context_ != nullptr) table_->finalize(context_);
  table_ = nullptr;
}

}  // namespace riffle::host
