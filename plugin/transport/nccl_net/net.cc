#include "plugin/transport/nccl_net/net.h"

#include <atomic>
#include <utility>

#include "plugin/transport/nccl_net/context.h"
#include "plugin/transport/nccl_net/exit_guard.h"

namespace riffle::nccl_net {
namespace {

std::atomic<const Net*> in_use{nullptr};
std::atomic<abi::ProfilerFn> nccls_profiler{nullptr};

const char* name_of(abi::NcclResult result) {
  switch (result) {
    case abi::kUnhandledCudaError:
      return "CUDA error";
    case abi::kSystemError:
      return "system error";
    case abi::kInternalError:
      return "internal error";
    case abi::kInvalidArgument:
      return "invalid argument";
    case abi::kInvalidUsage:
      return "invalid usage";
    case abi::kRemoteError:
      return "remote error";
    default:
      return "no code of a plugin's";
  }
}

// Libraries of 2.26 and later tell of requests so. A start has the handle that came with the
// request; what follows has the event that a start has made.
abi::NcclResult tell_profiler(void** event, int type, void* handle, std::int64_t plugin,
                              void* data) {
  const abi::ProfilerFn nccls = nccls_profiler.load(std::memory_order_acquire);
  const bool is_start = type == abi::kNetEventStart;
  if (is_start && handle == nullptr && event != nullptr) *event = nullptr;
  const bool is_nccls = is_start ? handle != nullptr : event != nullptr && *event != nullptr;
  if (nccls == nullptr || !is_nccls) return abi::kSuccess;
  return nccls(event, type, handle, plugin, data);
}

}  // namespace

void set_net_in_use(const Wire& wire, abi::LogFn log) {
  auto made = std::make_unique<Net>();
  made->wire = wire;
  made->name = wire.name();
  made->text = wire.path + " (v" + std::to_string(wire.version) + ")";
  wire.fill_newest(&made->table);
  made->log = log;
  const Net* none = nullptr;
  if (in_use.compare_exchange_strong(none, made.get())) (void)made.release();
}

Result<const Net*> net_in_use() {
  const Net* const net = in_use.load(std::memory_order_acquire);
  if (net == nullptr) return invalid_argument("COLLNET is asked before NET has started");
  return net;
}

Result<std::shared_ptr<void>> make_context(const Net& net, std::uint64_t comm_id) {
  const LibraryUse use;
  if (!use) return system_error(net.text + ": the process exits");
  auto context = std::make_unique<Context>();
  context->end = net.wire.end;
  const StartArguments start{
      .comm_id = comm_id, .config = &context->config, .log = net.log, .profiler = tell_profiler};
  if (const auto result = net.wire.start(start, &context->theirs); result != abi::kSuccess) {
    return failed_call(net, "init", result);
  }
  return std::shared_ptr<void>(contexts().add(std::move(context)), [](void* key) {
    const LibraryUse last;
    if (!last) return;  // a forked child may find the lock of contexts held for ever
    const auto ended = contexts().take(key);
    if (ended != nullptr) (void)ended->end(ended->theirs);
  });
}

Status failed_call(const Net& net, const std::string& call, abi::NcclResult result) {
  return remote_error(net.text + ": " + call + " returned " + std::to_string(result) + " (" +
                      name_of(result) + ")");
}

abi::ProfilerFn profiler_beside(abi::ProfilerFn nccls) {
  nccls_profiler.store(nccls, std::memory_order_release);
  return tell_profiler;
}

}  // namespace riffle::nccl_net
