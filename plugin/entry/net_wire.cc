#include "plugin/entry/net_wire.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "plugin/config/log.h"
#include "plugin/entry/border.h"
#include "plugin/entry/context.h"
#include "plugin/entry/options.h"
#include "plugin/transport/nccl_net/net.h"

namespace riffle::entry {
namespace {

std::atomic<const nccl_net::Wire*> wire_in_use{nullptr};

std::string said(const nccl_net::Wire& wire) {
  return "RIFFLE_NET=" + options().wire.name + ": " + wire.path + " (v" +
         std::to_string(wire.version) + ")";
}

Result<const nccl_net::Wire*> find_wire_in_use() {
  const nccl_net::Wire* const wire = wire_in_use.load(std::memory_order_acquire);
  if (wire == nullptr) return invalid_argument("COLLNET is asked before NET has started");
  return wire;
}

// Riffle's own transfers over the library have nothing to tell NCCL's profiler.
nccl_net::StartArguments arguments_of(const NetStart& start) {
  nccl_net::StartArguments arguments = start;
  if (options().has_collectives && options().transport.name == kOverLibrary) {
    arguments.profiler = nccl_net::profiler_beside(start.profiler);
  }
  return arguments;
}

}  // namespace

bool has_wire() { return !options().wire.name.empty(); }
bool is_wire_in_use() { return wire_in_use.load(std::memory_order_acquire) != nullptr; }

const Result<nccl_net::Library>& wire_library() {
  static const auto& library = *new Result<nccl_net::Library>(
      nccl_net::open_library(options().wire, reinterpret_cast<const void*>(&has_wire)));
  return library;
}

Status start_library(const nccl_net::Wire& wire, const NetStart& start) {
  auto context = std::make_unique<nccl_net::Context>();
  context->end = wire.end;
  if (start.config != nullptr) context->config = *start.config;
  if (options().has_collectives) {
    static const std::shared_ptr<void> process = publish_knobs(0);  // versions without contexts
    if (start.context != nullptr) context->ours = publish_knobs(start.comm_id);
  }
  const abi::NcclResult result = wire.start(arguments_of(start), &context->theirs);
  if (result != abi::kSuccess) {
    return system_error(said(wire) + ": its init returned " + std::to_string(result));
  }
  if (start.context != nullptr) *start.context = nccl_net::contexts().add(std::move(context));
  return Status::ok();
}

Status check_first_start(const nccl_net::Wire& wire, const NetStart& start) {
  const std::string missing = wire.missing();
  int devices = 0;
  std::string fault;
  if (!missing.empty()) {
    fault = "its table lacks " + missing;
  } else if (wire.devices(&devices) != abi::kSuccess || devices < 1) {
    fault = "it has no device";
  }
  if (fault.empty()) return Status::ok();
  // 2.28 may free a context that is left behind.
  if (start.context != nullptr && missing.empty()) (void)end_wire(*start.context);
  if (start.context != nullptr) *start.context = nullptr;
  return system_error(said(wire) + ": " + fault);
}

void announce(const nccl_net::Wire& wire, int table_version, abi::LogFn log) {
  nccl_net::set_net_in_use(wire, log);
  wire_in_use.store(&wire, std::memory_order_release);
  log_info(said(wire) + " carries NCCL's NET v" + std::to_string(table_version));
}

abi::NcclResult end_wire(void* context) {
  if (context == nullptr) return abi::kSuccess;
  abi::NcclResult result = abi::kInvalidArgument;
  const abi::ResultCode code = guard("finalize", [&] {
    const auto ended = nccl_net::contexts().take(context);
    if (ended != nullptr) result = ended->end(ended->theirs);
    return Status::ok();
  });
  return code == abi::kSuccess ? result : code;
}

Status count_wire_devices(int* count) {
  const auto wire = find_wire_in_use();
  if (!wire) return wire.status();
  if ((*wire)->devices(count) == abi::kSuccess) return Status::ok();
  return system_error(said(**wire) + ": its devices failed");
}

Status wire_properties(int device, abi::NetPropsV12* properties) {
  const auto wire = find_wire_in_use();
  if (!wire) return wire.status();
  int count = 0;
  if (Status status = count_wire_devices(&count); !status) return status;
  if (device < 0 || device >= count) {
    return invalid_argument("device " + std::to_string(device) + " does not exist, there are 0.." +
                            std::to_string(count - 1));
  }
  if ((*wire)->properties(device, properties) == abi::kSuccess) return Status::ok();
  return system_error(said(**wire) + ": its getProperties failed");
}

}  // namespace riffle::entry
