#include "plugin/entry/context.h"

#include <atomic>
#include <memory>

#include "plugin/config/log.h"
#include "plugin/entry/options.h"
#include "plugin/transport/device/device.h"

namespace riffle::entry {
namespace {

struct Context {
  // First, as NCCL's own RMA plugin takes a context for it (transport/nccl_net/context.h).
  abi::NetCommConfig config{abi::kTrafficClassUndefined};
  std::uint64_t comm_id = 0;
  std::shared_ptr<agreement::Publication> publication;
};

}  // namespace

Status find_devices() { return devices(options().transport.devices).status(); }

bool is_left_to_nccl(abi::LogFn log) {
  start_log(log);
  const RdmaFinding& rdma = options().rdma;
  static std::atomic<bool> was_said{false};
  if (rdma.is_left_to_nccl && !was_said.exchange(true)) log_info(rdma.text);
  if (rdma.passes_ports_by && !was_said.exchange(true)) log_warn(rdma.text);
  return rdma.is_left_to_nccl;
}

bool are_collectives_left_to_nccl(abi::LogFn log) {
  if (is_left_to_nccl(log)) return true;
  if (options().has_collectives) return false;
  if (!options().refusal) return true;  // NET says why
  static std::atomic<bool> was_said{false};
  if (!was_said.exchange(true)) {
    log_info("RIFFLE_NET=" + options().wire.name +
             ": all-reduces stay with NCCL over that library; RIFFLE_COLLNET=on carries them in "
             "group plans over that library's connections, RIFFLE_COLLNET=tcp over Riffle's TCP");
  }
  return true;
}

std::shared_ptr<agreement::Publication> publish_knobs(std::uint64_t comm_id) {
  return agreement::publish(agreement::job_key(comm_id), options().collective.connect.knobs);
}

Status start_process() {
  if (Status status = find_devices(); !status) return status;
  // These versions have no finalize: the publication ends with the process.
  static const std::shared_ptr<agreement::Publication> publication = publish_knobs(0);
  return Status::ok();
}

Status start_communicator(std::uint64_t comm_id, const abi::NetCommConfig* config, void** context) {
  if (Status status = find_devices(); !status) return status;
  auto made = std::make_unique<Context>();
  if (config != nullptr) made->config = *config;
  made->comm_id = comm_id;
  made->publication = publish_knobs(comm_id);
  *context = made.release();
  return Status::ok();
}

void end_communicator(void* context) { delete static_cast<Context*>(context); }

std::uint64_t comm_id_of(const void* context) {
  return context == nullptr ? 0 : static_cast<const Context*>(context)->comm_id;
}

}  // namespace riffle::entry
