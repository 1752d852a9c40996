#include "lab/nccl_host/collnet_node.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "lab/nccl_host/tables/plugin_call.h"
#include "plugin/kernels/types.h"

namespace riffle::host {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAskAgainUs = 200;  // all nodes share this machine

}  // namespace

Result<std::unique_ptr<CollNetNode>> CollNetNode::connect(CollNetTable& table,
                                                          Bootstrap& bootstrap) {
  const auto id = draw_id(bootstrap);
  if (!id) return id.status();
  std::unique_ptr<CollNetNode> node(new CollNetNode(table));
  if (const int r = table.init(*id, &node->context_); r != kSuccess) {
    return plugin_status(r, "COLLNET init");
  }
  if (Status s = node->link(bootstrap); !s) return s;
  return node;
}

Status CollNetNode::link(Bootstrap& bootstrap) {
  const auto ranks = static_cast<std::size_t>(bootstrap.size());
  std::array<std::byte, kHandleBytes> mine{};
  std::vector<std::byte> handles(kHandleBytes * ranks);
  void* listener = nullptr;
  if (const int r = table_.listen(context_, 0, mine.data(), &listener); r != kSuccess) {
    return plugin_status(r, "COLLNET listen");
  }
  if (Status s = bootstrap.all_gather(mine.data(), handles.data(), mine.size()); !s) return s;
  std::vector<void*> pointers;
  for (std::size_t i = 0; i < ranks; ++i) {
    pointers.push_back(handles.data() + i * kHandleBytes);
  }
  const int r =
      table_.connect(pointers.data(), bootstrap.size(), bootstrap.rank(), listener, &comm_);
  if (r != kSuccess) return plugin_status(r, "COLLNET connect");
  table_.close_listen(listener);
  if (comm_ == nullptr) return system_error("the plugin leaves all-reduces to NCCL");
  return Status::ok();
}

CollNetNode::~CollNetNode() {
  if (comm_ != nullptr) table_.close_coll(comm_);
  if (context_ != nullptr) table_.finalize(context_);
}

Status CollNetNode::all_reduce(MemoryRegion& send, MemoryRegion& receive, std::size_t bytes,
                               std::chrono::seconds limit) {
  void *send_mr = nullptr, *receive_mr = nullptr, *request = nullptr;
  if (table_.register_memory(comm_, send.data(), bytes, &send_mr) != kSuccess ||
      table_.register_memory(comm_, receive.data(), bytes, &receive_mr) != kSuccess) {
    return system_error("COLLNET regMr failed");
  }
  const int r = table_.iallreduce(comm_, send.data(), receive.data(), bytes / sizeof(float),
                                  static_cast<int>(DataType::kFloat32),
                                  static_cast<int>(ReduceOp::kSum), send_mr, receive_mr, &request);
  if (r != kSuccess) return plugin_status(r, "COLLNET iallreduce");
  if (request == nullptr) return internal_error("the plugin takes no request");
  const Status done = finish(request, limit);
  table_.deregister_memory(comm_, receive_mr);
  table_.deregister_memory(comm_, send_mr);
  return done;
}

Status CollNetNode::finish(void* request, std::chrono::seconds limit) {
  const auto deadline = Clock::now() + limit;
  for (int done = 0, size = 0; Clock::now() < deadline; usleep(kAskAgainUs)) {
    const int r = table_.test(request, &done, &size);
    if (r != kSuccess) return plugin_status(r, "COLLNET test");
    if (done != 0) return Status::ok();
  }
  return timeout_error("an all-reduce is not done after " + std::to_string(limit.count()) + " s");
}

}  // namespace riffle::host
