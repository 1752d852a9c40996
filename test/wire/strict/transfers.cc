// Memory and transfers.
#include <fcntl.h>

#include <algorithm>

#include "test/wire/strict/network.h"
#include "test/wire/strict/objects.h"

namespace strict {
namespace {

using riffle::abi::kRemoteError;
using riffle::abi::kSuccess;
using riffle::abi::kSystemError;

constexpr int kMostRequests = riffle::abi::kNetMaxRequests;
constexpr int kMostReceives = 8;

// True from the call on that STRICT_NET_FAIL_AT names.
bool fails() {
  Objects& o = objects();
  ++o.transfers;
  return o.behaviour.fail_at > 0 && o.transfers >= o.behaviour.fail_at;
}

Region* live_region(Connection* c, void* mhandle) {
  auto* const r = static_cast<Region*>(mhandle);
  demand(c->regions.contains(r), "an unknown memory handle, or one of another connection");
  return r;
}

void demand_inside(const Region& r, const void* data, std::size_t size) {
  const auto* const begin = static_cast<const char*>(data);
  demand(begin >= r.base && begin + size <= r.base + r.size, "memory outside its region");
}

// Null: as many are outstanding as STRICT_NET_REQUESTS allows.
Request* add_request(Connection* c, std::vector<Part> parts) {
  Objects& o = objects();
  const int outstanding = c->outstanding();
  demand(outstanding < kMostRequests, "more requests than NCCL may have");
  if (outstanding >= o.behaviour.requests) return nullptr;
  const std::size_t before = c->requests.size();
  for (const auto& r : c->requests) o.requests.erase(r.get());  // some may be forgotten now
  Request* const made = c->add(std::move(parts), o.behaviour.slow);
  demand(c->requests.size() <= before + 1, "requests multiply");
  for (const auto& r : c->requests) o.requests.insert(r.get());
  c->progress();
  return made;
}

Request* live_request(void* request) {
  auto* const r = static_cast<Request*>(request);
  demand(objects().requests.contains(r), "an unknown request");
  return r;
}

}  // namespace

Result register_region(void* comm, void* data, std::size_t size, int type, int dma_buf_fd,
                       void** mhandle) {
  const std::lock_guard lock(objects().mutex);
  Connection* const c = objects().live_connection(comm);
  demand(size > 0, "a region of no bytes");
  demand(type == riffle::abi::kPtrHost || type == riffle::abi::kPtrCuda, "an unknown pointer type");
  if (dma_buf_fd >= 0) {
    demand(::fcntl(dma_buf_fd, F_GETFD) >= 0, "a DMA-BUF that is not open");
    objects().probe.dma_buf_fd = dma_buf_fd;
  }
  *mhandle = *c->regions.insert(new Region{static_cast<char*>(data), size, type}).first;
  return kSuccess;
}

Result deregister_region(void* comm, void* mhandle) {
  const std::lock_guard lock(objects().mutex);
  Connection* const c = objects().live_connection(comm);
  Region* const r = live_region(c, mhandle);
  c->regions.erase(r);
  delete r;
  return kSuccess;
}

Result device_region(void* comm, void* mhandle, void** out) {
  const std::lock_guard lock(objects().mutex);
  *out = live_region(objects().live_connection(comm), mhandle)->base;
  return kSuccess;
}

Result send(void* comm, void* data, std::size_t size, int tag, void* mhandle, void* profiler_handle,
            void** request) {
  const std::lock_guard lock(objects().mutex);
  Connection* const c = objects().live_connection(comm, true);
  demand_inside(*live_region(c, mhandle), data, size);
  objects().probe.profiler_handle = profiler_handle;
  if (fails()) return kSystemError;
  *request = add_request(c, {Part{static_cast<char*>(data), size, tag}});
  return kSuccess;
}

Result receive(void* comm, int n, void** data, const std::size_t* sizes, const int* tags,
               void** mhandles, void* profiler_handle, void** request) {
  const std::lock_guard lock(objects().mutex);
  Connection* const c = objects().live_connection(comm, false);
  demand(n >= 1 && n <= kMostReceives, "a group of receives beyond maxRecvs");
  std::vector<Part> parts;
  for (int i = 0; i < n; ++i) {
    demand_inside(*live_region(c, mhandles[i]), data[i], sizes[i]);
    parts.push_back({static_cast<char*>(data[i]), sizes[i], tags[i]});
  }
  objects().probe.profiler_handle = profiler_handle;
  objects().probe.request_before = *request;
  if (fails()) return kSystemError;
  *request = add_request(c, std::move(parts));
  return kSuccess;
}

Result flush(void* comm, int n, void** data, const int* sizes, void** mhandles, void** request) {
  const std::lock_guard lock(objects().mutex);
  Connection* const c = objects().live_connection(comm, false);
  for (int i = 0; i < n; ++i) {
    demand(sizes[i] >= 0, "a flush of a negative size");
    demand_inside(*live_region(c, mhandles[i]), data[i], static_cast<std::size_t>(sizes[i]));
  }
  Request* const r = add_request(c, {});
  if (r != nullptr) r->is_flush = true;
  *request = r;
  return kSuccess;
}

Result test(void* request, int* done, int* sizes) {
  const std::lock_guard lock(objects().mutex);
  Request* const r = live_request(request);
  demand(!r->is_over, "a test of a request that was done");
  Connection* const c = r->connection;
  c->progress();
  *done = 0;
  if (fails()) return kSystemError;
  if (!std::ranges::all_of(r->parts, [](const Part& p) { return p.is_complete; })) {
    return c->is_broken ? kRemoteError : kSuccess;
  }
  if (r->patience-- > 0) return kSuccess;
  r->is_over = true;
  *done = 1;
  const int lie = c->sends ? 0 : objects().behaviour.lie;
  for (std::size_t i = 0; sizes != nullptr && i < r->parts.size(); ++i) {
    sizes[i] = static_cast<int>(r->parts[i].arrived) + lie;
  }
  return kSuccess;
}

Result consume(void* comm, int n, void* request) {
  const std::lock_guard lock(objects().mutex);
  Connection* const c = objects().live_connection(comm, false);
  const Request* const r = live_request(request);
  demand(r->connection == c && r->is_over, "irecvConsumed of what was not received");
  demand(n == static_cast<int>(r->parts.size()), "irecvConsumed of another number of messages");
  objects().probe.consumed = request;
  return kSuccess;
}

}  // namespace strict
