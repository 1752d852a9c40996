#include "test/wire/strict/network.h"

#include <cstdlib>
#include <mutex>
#include <string>

#include "test/wire/strict/behaviour.h"
#include "test/wire/strict/lies.h"
#include "test/wire/strict/objects.h"

namespace strict {
namespace {

using riffle::abi::kInvalidArgument;
using riffle::abi::kSuccess;

}  // namespace

Objects& objects() {
  static Objects& all = *new Objects;
  return all;
}

namespace {

// A library has things of its own to tear down, too.
void tear_down_at_exit() {
  static const bool once = std::atexit([] {
                             const std::lock_guard lock(objects().mutex);
                             objects().is_torn_down = true;
                           }) == 0;
  (void)once;
}

void begin(const Behaviour& behaviour) {
  objects().behaviour = behaviour;
  seed_lies(behaviour.seed);
  tear_down_at_exit();
}

}  // namespace

Result start_once(int most_requests) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  demand(!o.is_started, "a table without contexts is started twice");
  begin(read_behaviour());
  o.most_requests = most_requests;
  ++o.probe.inits;
  if (o.behaviour.init_result != kSuccess) return o.behaviour.init_result;
  o.is_started = true;
  return kSuccess;
}

Result start(void** context, std::uint64_t comm_id, int traffic_class) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  demand(context != nullptr, "init without a place for the context");
  if (!o.is_told) begin(read_behaviour());
  ++o.probe.inits;
  o.probe.comm_id = comm_id;
  o.probe.traffic_class = traffic_class;
  if (o.behaviour.init_result != kSuccess) return o.behaviour.init_result;
  o.is_started = true;
  auto* const made = new Context{comm_id};
  o.contexts.insert(made);
  *context = made;
  return kSuccess;
}

Result finalize(void* context) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  auto* const ended = o.live_context(context);
  for (const Listener* l : o.listeners) demand(l->context != ended, "finalize before closeListen");
  o.contexts.erase(ended);
  delete ended;
  ++o.probe.finalizes;
  return kSuccess;
}

int device_count() {
  const std::lock_guard lock(objects().mutex);
  objects().demand_started();
  return objects().behaviour.devices;
}

Result check_device(int device) {
  const std::lock_guard lock(objects().mutex);
  objects().demand_started();
  return objects().has_device(device) ? kSuccess : kInvalidArgument;
}

bool offloads() {
  const std::lock_guard lock(objects().mutex);
  return objects().behaviour.offload;
}

Result make_device(int* device, const riffle::abi::NetVPropsV12& members) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  o.demand_started();
  for (int i = 0; i < members.ndevs; ++i) {
    demand(o.has_device(members.devs[i]), "a virtual device of a device that does not exist");
  }
  *device = o.behaviour.devices + static_cast<int>(o.virtual_devices.size());
  o.virtual_devices.push_back(members);
  o.probe.members = members;
  return kSuccess;
}

riffle::abi::NetVPropsV12 members_of(int device) {
  const std::lock_guard lock(objects().mutex);
  const Objects& o = objects();
  if (device < o.behaviour.devices) return {.ndevs = 1, .devs = {device}};
  return o.virtual_devices[static_cast<std::size_t>(device - o.behaviour.devices)];
}

Result set_attributes(void* context, const riffle::abi::NetAttr& attributes) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  o.probe.attributes_comm_id = o.live_context(context)->comm_id;
  o.probe.attributes = attributes;
  return kSuccess;
}

}  // namespace strict

extern "C" __attribute__((visibility("default"))) void strict_net_behave(
    const strict::Behaviour& behaviour) {
  strict::Objects& o = strict::objects();
  const std::lock_guard lock(o.mutex);
  o.is_told = true;
  o.transfers = o.registrations = 0;
  strict::begin(behaviour);
}

extern "C" __attribute__((visibility("default"))) void strict_net_probe(strict::Probe* out) {
  strict::Objects& o = strict::objects();
  const std::lock_guard lock(o.mutex);
  *out = o.probe;
  out->calls = o.calls;
  out->contexts = static_cast<int>(o.contexts.size());
  out->listeners = static_cast<int>(o.listeners.size());
  for (const auto* c : o.connections) {
    ++(c->sends ? out->sends : out->receives);
    out->regions += static_cast<int>(c->regions.size());
  }
}
