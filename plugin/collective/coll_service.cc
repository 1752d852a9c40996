#include "plugin/collective/coll_service.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "plugin/collective/communicator.h"
#include "plugin/transport/factory.h"
#include "topology/base/check.h"

namespace riffle::coll {

class Listener {
 public:
  std::shared_ptr<const Transport> transport;
  std::uint64_t comm_id;
  std::unique_ptr<TransportListener> open;  // until connect
  Handle handle;
};

namespace {

// Everything but the scratch bytes at the end, which belong to the receiver of the blob.
bool is_same(const Handle& a, const Handle& b) {
  return std::memcmp(a.bytes.data(), b.bytes.data(), kHandleBytes - sizeof(void*)) == 0;
}

std::string carrier_of(const HandleContent& content) {
  return content.is_over_library ? "another library (RIFFLE_NET)" : "Riffle's TCP";
}

std::byte* shifted(void* p, std::uint64_t bytes) {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(p) - bytes);
}
const std::byte* shifted(const void* p, std::uint64_t bytes) {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(p) - bytes);
}

// Elements of the window before the own block.
std::uint64_t own_begin(std::uint64_t rank, const Operation& o) {
  const std::uint64_t begin = rank * o.block;
  return std::min(begin > o.window ? begin - o.window : 0, o.count);
}
std::uint64_t own_count(std::uint64_t rank, const Operation& o) {
  return own_begin(rank + 1, o) - own_begin(rank, o);
}

Status check_window(const Communicator& c, std::size_t per_rank, std::size_t offset,
                    std::size_t bytes, std::size_t element) {
  const std::size_t whole = per_rank * static_cast<std::size_t>(c.size());
  if (offset > whole || bytes > whole - offset) {
    return invalid_argument("window [" + std::to_string(offset) + ", +" + std::to_string(bytes) +
                            ") outside the vector of " + std::to_string(whole) + " bytes");
  }
  if (per_rank % element != 0 || offset % element != 0 || bytes % element != 0) {
    return invalid_argument("block, window offset and window bytes must be multiples of " +
                            std::to_string(element) + " bytes");
  }
  return Status::ok();
}

}  // namespace

Result<Listener*> listen(const TransportOptions& options, int device, std::uint64_t comm_id,
                         Handle* handle) {
  auto transport = make_transport(options);
  if (!transport) return transport.status();
  auto open = (*transport)->listen(device, comm_id);
  if (!open) return open.status();
  auto listener = std::make_unique<Listener>();
  listener->transport = std::move(*transport);
  listener->comm_id = comm_id;
  listener->open = std::move(*open);
  listener->handle = listener->open->handle();
  *handle = listener->handle;
  return listener.release();
}

void close(Listener* listener) { delete listener; }

Result<Communicator*> connect(std::span<const Handle* const> handles, int /*rank*/,
                              Listener* listener, const CollectiveOptions& options) {
  if (listener == nullptr || !listener->open) {
    return invalid_argument("connect: the listen object was used already");
  }
  std::vector<HandleContent> contents;
  int rank = -1;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    Result<HandleContent> content = decode(*handles[i]);
    if (!content) {
      return Status(content.status().code(),
                    "handle of node " + std::to_string(i) + ": " + content.status().message());
    }
    if (content->is_over_library != listener->open->content().is_over_library) {
      return remote_error("node " + std::to_string(i) + " carries group plans over " +
                          carrier_of(*content) + ", this node over " +
                          carrier_of(listener->open->content()) +
                          ": set RIFFLE_NET and RIFFLE_COLLNET alike on all nodes");
    }
    if (is_same(*handles[i], listener->handle)) rank = static_cast<int>(i);
    contents.push_back(std::move(*content));
  }
  if (rank < 0) return invalid_argument("connect: our own handle is not among the nodes' handles");
  Result<std::unique_ptr<Communicator>> c =
      Communicator::connect(listener->transport, std::move(contents), rank, listener->comm_id,
                            std::move(listener->open), options);
  if (!c) return c.status();
  return c->release();
}

void close(Communicator* communicator) {
  if (communicator != nullptr) Communicator::close(std::unique_ptr<Communicator>(communicator));
}

bool reduce_support(int nccl_type, int nccl_op) {
  return nccl_type >= 0 && nccl_type < kDataTypes && nccl_op >= 0 && nccl_op < kReduceOps;
}

namespace {

Request* begin(Communicator* c, Collective collective, DataType type, ReduceOp op) {
  Request* request = c->take_request();
  if (request == nullptr) return nullptr;
  request->operation.collective = collective;
  request->operation.type = type;
  request->operation.op = op;
  request->operation.block = request->operation.window = 0;
  request->operation.kept = nullptr;
  return request;
}

void describe(Request* request, const void* send, std::size_t send_bytes, void* recv,
              std::size_t recv_bytes, std::size_t bytes) {
  request->send_begin = static_cast<const std::byte*>(send);
  request->send_bytes = send_bytes;
  request->recv_begin = static_cast<const std::byte*>(recv);
  request->recv_bytes = recv_bytes;
  request->bytes = bytes;
}

Request* post(Communicator* c, Request* request, const void* send, std::size_t send_bytes,
              void* recv, std::size_t recv_bytes, std::size_t bytes) {
  describe(request, send, send_bytes, recv, recv_bytes, bytes);
  c->post(request);
  return request;
}

}  // namespace

Result<Request*> all_reduce(Communicator* c, const void* send, void* recv, std::size_t count,
                            DataType type, ReduceOp op, std::uint64_t coll) {
  Request* request = begin(c, Collective::kAllReduce, type, op);
  if (request == nullptr) return request;
  Operation& o = request->operation;
  o.count = count;
  o.send = static_cast<const std::byte*>(send);
  o.recv = static_cast<std::byte*>(recv);
  const std::size_t bytes = count * size_of(type);
  if (!c->keep_input(request, bytes)) return static_cast<Request*>(nullptr);
  describe(request, send, bytes, recv, bytes, bytes);
  const CallShape shape{coll, send, recv, count, static_cast<int>(type), static_cast<int>(op)};
  return c->post_all_reduce(request, shape) ? request : nullptr;
}

Result<Request*> all_gather(Communicator* c, const void* send, void* recv,
                            std::size_t bytes_per_rank, std::size_t window_offset,
                            std::size_t window_bytes) {
  if (Status s = check_window(*c, bytes_per_rank, window_offset, window_bytes, 1); !s) return s;
  Request* request = begin(c, Collective::kAllGather, DataType::kUint8, ReduceOp::kSum);
  if (request == nullptr) return request;
  Operation& o = request->operation;
  o.count = window_bytes;
  o.block = bytes_per_rank;
  o.window = window_offset;
  o.send = shifted(send, own_begin(c->rank(), o));
  o.recv = static_cast<std::byte*>(recv);
  return post(c, request, send, own_count(c->rank(), o), recv, window_bytes, window_bytes);
}

Result<Request*> reduce_scatter(Communicator* c, const void* send, void* recv,
                                std::size_t bytes_per_rank, std::size_t window_offset,
                                std::size_t window_bytes, DataType type, ReduceOp op) {
  const std::size_t size = size_of(type);
  if (Status s = check_window(*c, bytes_per_rank, window_offset, window_bytes, size); !s) return s;
  Request* request = begin(c, Collective::kReduceScatter, type, op);
  if (request == nullptr) return request;
  Operation& o = request->operation;
  o.count = window_bytes / size;
  o.block = bytes_per_rank / size;
  o.window = window_offset / size;
  o.send = static_cast<const std::byte*>(send);
  o.recv = shifted(recv, own_begin(c->rank(), o) * size);
  return post(c, request, send, window_bytes, recv, own_count(c->rank(), o) * size, window_bytes);
}

Result<bool> test(Request* request, int* bytes) { return request->owner->test(request, bytes); }

void fence(Communicator* c, const void* base, std::size_t size) { c->fence(base, size); }

}  // namespace riffle::coll
