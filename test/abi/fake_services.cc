// Services without a network behind the real border: every call is recorded, and can be told to
// fail in any way a service may. Linked with plugin/entry into a shared object of its own, so that
// the tables are tested as NCCL uses them, through dlopen.
#include "test/abi/fake_services.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/collective/coll_service.h"
#include "plugin/identity/identity.h"
#include "plugin/net/net_service.h"
#include "plugin/transport/device/device.h"

namespace riffle {
namespace {

std::mutex mutex;
Failure failure = kFailNot;
std::string calls;

// An object at a recognisable address for every kind of pointer that services hand out.
char objects[kFakeObjects];

template <class T>
T* object(FakeObject which) {
  return reinterpret_cast<T*>(&objects[which]);
}

Status enter(const std::string& call) {
  const std::lock_guard lock(mutex);
  calls += call + "\n";
  switch (failure) {
    case kFailNot:
    case kFailNotYet:
      return Status::ok();
    case kFailBadAlloc:
      throw std::bad_alloc();
    case kFailInt:
      throw 42;
    case kFailInvariant:
      RIFFLE_CHECK(false, "broken on purpose");
    case kFailRuntime:
      throw std::runtime_error("thrown on purpose");
    case kFailInvalidArgument:
      return invalid_argument("refused on purpose");
    case kFailSystem:
      return system_error("refused on purpose");
    case kFailRemote:
      return remote_error("refused on purpose");
    case kFailTimeout:
      return timeout_error("refused on purpose");
    case kFailInternal:
      return internal_error("refused on purpose");
  }
  return Status::ok();
}

template <class T>
Result<T*> made(const std::string& call, FakeObject which) {
  if (Status status = enter(call); !status) return status;
  return failure == kFailNotYet ? nullptr : object<T>(which);
}

std::string text(const void* p) { return std::to_string(reinterpret_cast<std::uintptr_t>(p)); }

template <class... Numbers>
std::string call(const char* name, Numbers... numbers) {
  std::string line = name;
  ((line.append(1, ' ').append(std::to_string(numbers))), ...);
  return line;
}

}  // namespace

const Result<std::vector<Device>>& devices(const DeviceChoice&) {
  static Result<std::vector<Device>> none = invalid_argument("not asked for yet");
  if (Status status = enter("devices"); !status) return none = status;
  static const Result<std::vector<Device>> all =
      std::vector<Device>{{.name = "riffle0",
                           .pci_path = "/sys/devices/pci0000:00/0000:00:03.0",
                           .guid = 77,
                           .speed_mbps = 25000,
                           .addresses = {{"eth0", "192.0.2.1"}}},
                          {.name = "riffle1", .guid = 78, .addresses = {{"eth1", "192.0.2.2"}}}};
  return all;
}

namespace net {

Result<Listener*> listen(const TransportOptions&, int device, std::uint64_t comm_id,
                         Handle* handle) {
  handle->bytes.fill(0x5a);
  return made<Listener>(call("net::listen", device, comm_id), kFakeNetListener);
}
Result<SendConnection*> connect(const TransportOptions&, const NetOptions&, int device,
                                Handle* handle) {
  return made<SendConnection>(call("net::connect", device, handle->bytes[127]), kFakeSend);
}
Result<RecvConnection*> accept(Listener*) { return made<RecvConnection>("net::accept", kFakeRecv); }
Result<Request*> isend(SendConnection* c, const void* data, std::size_t size, int tag) {
  return made<Request>(
      call("net::isend", c == object<SendConnection>(kFakeSend), size, tag) + " " + text(data),
      kFakeNetRequest);
}
Result<Request*> irecv(RecvConnection* c, std::span<void* const> data,
                       std::span<const std::size_t> sizes, std::span<const int> tags) {
  std::string line = call("net::irecv", c == object<RecvConnection>(kFakeRecv), data.size());
  for (std::size_t i = 0; i < data.size(); ++i) {
    line.append(" ").append(text(data[i])).append("/").append(std::to_string(sizes[i]));
    line.append("/").append(std::to_string(tags[i]));
  }
  return made<Request>(line, kFakeNetRequest);
}
Result<bool> test(Request* r, int* sizes) {
  if (Status status = enter(call("net::test", r == object<Request>(kFakeNetRequest))); !status) {
    return status;
  }
  if (failure == kFailNotYet) return false;
  if (sizes != nullptr) sizes[0] = 4711;
  return true;
}
void close(Listener*) { (void)enter("net::close listener"); }
void close(SendConnection*) { (void)enter("net::close send"); }
void close(RecvConnection*) { (void)enter("net::close recv"); }
void fence(SendConnection*, const void* base, std::size_t size) {
  (void)enter(call("net::fence send", size) + " " + text(base));
}
void fence(RecvConnection*, const void* base, std::size_t size) {
  (void)enter(call("net::fence recv", size) + " " + text(base));
}

}  // namespace net

namespace coll {

Result<Listener*> listen(const TransportOptions&, int device, std::uint64_t comm_id,
                         Handle* handle) {
  handle->bytes.fill(0x5a);
  return made<Listener>(call("coll::listen", device, comm_id), kFakeCollListener);
}
void close(Listener*) { (void)enter("coll::close listener"); }
Result<Communicator*> connect(std::span<const Handle* const> handles, int rank, Listener*,
                              const CollectiveOptions&) {
  std::string line = call("coll::connect", handles.size(), rank);
  for (const Handle* handle : handles) line += call("", handle->bytes[0]);
  return made<Communicator>(line, kFakeColl);
}
void close(Communicator*) { (void)enter("coll::close"); }
bool reduce_support(int type, int op) {
  (void)enter(call("coll::reduce_support", type, op));
  return type >= 0 && type < kDataTypes && op >= 0 && op < kReduceOps;
}
Result<Request*> all_reduce(Communicator* c, const void* send, void* recv, std::size_t count,
                            DataType type, ReduceOp op, std::uint64_t coll) {
  Result<Request*> request =
      made<Request>(call("coll::all_reduce", c == object<Communicator>(kFakeColl), count,
                         static_cast<int>(type), static_cast<int>(op)) +
                        " " + text(send) + " " + text(recv),
                    kFakeCollRequest);
  if (coll != 0 && request && *request != nullptr) {  // as the real service: once, when taken
    (void)identity::identify(
        {coll, send, recv, count, static_cast<int>(type), static_cast<int>(op)});
  }
  return request;
}
Result<Request*> all_gather(Communicator*, const void* send, void* recv, std::size_t bytes_per_rank,
                            std::size_t offset, std::size_t bytes) {
  return made<Request>(
      call("coll::all_gather", bytes_per_rank, offset, bytes) + " " + text(send) + " " + text(recv),
      kFakeCollRequest);
}
Result<Request*> reduce_scatter(Communicator*, const void* send, void* recv,
                                std::size_t bytes_per_rank, std::size_t offset, std::size_t bytes,
                                DataType type, ReduceOp op) {
  return made<Request>(call("coll::reduce_scatter", bytes_per_rank, offset, bytes,
                            static_cast<int>(type), static_cast<int>(op)) +
                           " " + text(send) + " " + text(recv),
                       kFakeCollRequest);
}
Result<bool> test(Request* r, int* bytes) {
  if (Status status = enter(call("coll::test", r == object<Request>(kFakeCollRequest))); !status) {
    return status;
  }
  if (failure == kFailNotYet) return false;
  if (bytes != nullptr) *bytes = 4711;
  return true;
}
void fence(Communicator*, const void* base, std::size_t size) {
  (void)enter(call("coll::fence", size) + " " + text(base));
}

}  // namespace coll
}  // namespace riffle

extern "C" {
__attribute__((visibility("default"))) void fake_fail(riffle::Failure how) {
  const std::lock_guard lock(riffle::mutex);
  riffle::failure = how;
}
__attribute__((visibility("default"))) void fake_take_calls(char* out, std::size_t size) {
  const std::lock_guard lock(riffle::mutex);
  riffle::calls.copy(out, size - 1);
  out[std::min(size - 1, riffle::calls.size())] = '\0';
  riffle::calls.clear();
}
}
