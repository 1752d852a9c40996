// Listening, connecting and closing, over Unix sockets in the abstract namespace.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "test/wire/strict/network.h"
#include "test/wire/strict/objects.h"

namespace strict {
namespace {

using riffle::abi::kRemoteError;
using riffle::abi::kSuccess;
using riffle::abi::kSystemError;
using riffle::abi::NetDevHandle;

constexpr std::uint32_t kHandleMagic = 0x57a1c0de;

// In the 128 bytes that NCCL carries to the peer; `tries` is the connecting side's.
struct Handle {
  std::uint32_t magic;
  std::int32_t tries;
  std::int64_t process;
  std::int64_t number;
  int fd;  // of the connecting side, until it stands; 0: none yet
};

sockaddr_un address_of(const Handle& handle, socklen_t* length) {
  const std::string name =
      "strict-net-" + std::to_string(handle.process) + "-" + std::to_string(handle.number);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

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
  static std::int64_t count = 0;
  const Handle made{kHandleMagic, 0, ::getpid(), ++count, 0};
  std::memcpy(handle, &made, sizeof made);
  socklen_t length = 0;
  const sockaddr_un address = address_of(made, &length);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(fd, 1) != 0) {
    return kSystemError;
  }
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
    peer.fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = 0;
    const sockaddr_un address = address_of(peer, &length);
    if (peer.fd < 0 ||
        ::connect(peer.fd, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      return kRemoteError;
    }
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
