// Listening, connecting and closing.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "test/wire/strict/address.h"
#include "test/wire/strict/network.h"
#include "test/wire/strict/objects.h"

namespace strict {
namespace {

using riffle::abi::kRemoteError;
using riffle::abi::kSuccess;
using riffle::abi::kSystemError;
using riffle::abi::NetDevHandle;

constexpr std::uint32_t kHandleMagic = 0x57a1c0de;

// In the 128 bytes that NCCL carries to the peer; `tries` and `fd` are the connecting side's.
struct Handle {
  std::uint32_t magic;
  std::int32_t tries;
  Address address;
  int fd;  // until it stands; 0: none yet
};
static_assert(sizeof(Handle) <= riffle::abi::kNetHandleBytes);

Connection* add_connection(int fd, bool sends, NetDevHandle** offload) {
  Objects& o = objects();
  static int device_memory;
  auto* const device = o.behaviour.offload
                           ? new NetDevHandle{1, 7, &device_memory, sizeof device_memory, 0}
                           : nullptr;
  if (offload != nullptr) *offload = device;
  auto* const made = new Connection(fd, sends, device);
  o.connections.insert(made);
  return made;
}

// Where connect and accept need each other: a byte each way, for which neither call waits.
void says(int fd) { (void)!::send(fd, "m", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }
bool hears(int fd) {
  char byte;
  return ::recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
}

}  // namespace

Result listen(bool has_context, void* context, int device, void* handle, void** listener) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  o.demand_started();
  demand(o.has_device(device), "listen on a device that does not exist");
  Handle made{kHandleMagic, 0, {}, 0};
  const int fd = listen_at(o.behaviour.interface, &made.address);
  if (fd < 0) return kSystemError;
  std::memcpy(handle, &made, sizeof made);
  Context* const owner = has_context ? o.live_context(context) : nullptr;
  *listener = *o.listeners.insert(new Listener{fd, owner, o.behaviour.slow}).first;
  return kSuccess;
}

Result connect(bool has_context, void* context, int device, int traffic_class, void* handle,
               void** comm, NetDevHandle** offload) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  o.demand_started();
  demand(o.has_device(device), "connect on a device that does not exist");
  if (has_context) {
    o.probe.connect_context = context;
    o.probe.connect_comm_id = o.live_context(context)->comm_id;
  } else {
    o.probe.traffic_class = traffic_class;
  }
  Handle peer;
  std::memcpy(&peer, handle, sizeof peer);
  demand(peer.magic == kHandleMagic, "connect with a handle of something else");
  *comm = nullptr;
  ++o.calls;
  if (o.never("connect")) return kSuccess;
  if (peer.tries++ < o.behaviour.slow) {
    std::memcpy(handle, &peer, sizeof peer);
    return kSuccess;
  }
  if (peer.fd == 0) {
    demand(peer.tries == o.behaviour.slow + 1, "connect lost what it keeps in the handle");
    peer.fd = connected_to(peer.address);
    if (peer.fd < 0) return kRemoteError;
  }
  if (o.behaviour.meets && !hears(peer.fd)) {
    std::memcpy(handle, &peer, sizeof peer);
    return kSuccess;
  }
  if (o.behaviour.meets) says(peer.fd);
  *comm = add_connection(peer.fd, true, offload);
  return kSuccess;
}

Result accept(void* listener, void** comm, NetDevHandle** offload) {
  const std::lock_guard lock(objects().mutex);
  Listener* const l = objects().live_listener(listener);
  demand(!l->has_accepted, "a second accept of one listener");
  Objects& o = objects();
  *comm = nullptr;
  ++o.calls;
  if (o.never("accept") || l->refusals-- > 0) return kSuccess;
  if (l->pending < 0) {
    l->pending = ::accept4(l->fd, nullptr, nullptr, SOCK_CLOEXEC);
    demand(l->pending >= 0 || !o.behaviour.waits, "accept before the peer has begun to connect");
    if (l->pending < 0) return errno == EAGAIN ? kSuccess : kSystemError;
    if (o.behaviour.meets) says(l->pending);
  }
  if (o.behaviour.meets && !hears(l->pending)) return kSuccess;
  l->has_accepted = true;
  *comm = add_connection(l->pending, false, offload);
  l->pending = -1;
  return kSuccess;
}

// Requests may be outstanding (NCCL's abort), regions may not.
Result close_connection(void* comm, bool sends) {
  const std::lock_guard lock(objects().mutex);
  Objects& o = objects();
  Connection* const c = o.live_connection(comm, sends);
  demand(c->regions.empty(), "a connection is closed before its regions are deregistered");
  for (const auto& r : c->requests) o.requests.erase(r.get());
  o.connections.erase(c);
  delete static_cast<NetDevHandle*>(c->offload);
  delete c;
  return kSuccess;
}

Result close_listener(void* listener) {
  const std::lock_guard lock(objects().mutex);
  Listener* const l = objects().live_listener(listener);
  objects().listeners.erase(l);
  ::close(l->fd);
  if (l->pending >= 0) ::close(l->pending);
  delete l;
  return kSuccess;
}

}  // namespace strict
