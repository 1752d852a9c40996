// Memory and transfers.
#include <fcntl.h>

#include <algorithm>

#include "test/wire/strict/lies.h"
#include "test/wire/strict/network.h"
#include "test/wire/strict/objects.h"

namespace strict {
namespace {

using riffle::abi::kRemoteError;
using riffle::abi::kSuccess;
using riffle::abi::kSystemError;

constexpr int kMostReceives = 8;

// True from the call on that STRICT_NET_FAIL_AT names.
bool fails() {
  Objects& o = objects();
  ++o.transfers;
  ++o.calls;
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
  demand(outstanding < o.most_requests, "more requests than NCCL may have");
  if (outstanding >= o.behaviour.requests) return nullptr;
  if (o.never(c->sends ? "isend" : "irecv")) return nullptr;
  while (const Request* const old = c->oldest_to_forget()) {
    o.requests.erase(const_cast<Request*>(old));
    c->requests.pop_front();
  }
  Request* const made = c->add(std::move(parts), o.behaviour.slow);
  o.requests.insert(made);
  c->progress();
  return made;
}

int told_size(const Connection& c, const Part& part, Lie lie) {
  const int size = static_cast<int>(part.arrived);
  if (c.sends) return size;
  switch (lie) {
    case Lie::kTooLong:
      return size + 5;
    case Lie::kTooShort:
      return size / 2;
    case Lie::kNegative:
      return -1;
    case Lie::kTooEarly:
      return static_cast<int>(c.last_size);
    default:
      return size + objects().behaviour.lie;
  }
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
  Objects& o = objects();
  if (o.behaviour.refuse_mr > 0 && ++o.registrations >= o.behaviour.refuse_mr) return kSystemError;
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
  const Lie lie = next_lie(false, false);
  if (fails() || lie == Lie::kError) return kSystemError;
  *request = nullptr;
  if (lie == Lie::kBusy) return kSuccess;
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
  const Lie lie = next_lie(false, true);
  if (fails() || lie == Lie::kError) return kSystemError;
  *request = nullptr;
  if (lie == Lie::kBusy) return kSuccess;
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
  objects().demand_alive();
  Request* const r = live_request(request);
  demand(!r->is_failed, "a test of a request that has failed");
  demand(!r->is_over, "a test of a request that was done");
  Connection* const c = r->connection;
  c->progress();
  *done = 0;
  Lie lie = next_lie(true, !c->sends);
  if (objects().behaviour.early && !c->sends) lie = Lie::kTooEarly;
  r->is_failed = fails() || lie == Lie::kError;
  if (r->is_failed) return kSystemError;
  const bool is_complete =
      std::ranges::all_of(r->parts, [](const Part& p) { return p.is_complete; });
  if (!is_complete && lie != Lie::kTooEarly) {
    r->is_failed = c->is_broken;
    return c->is_broken ? kRemoteError : kSuccess;
  }
  if (objects().never("test") || lie == Lie::kNotYet || r->patience-- > 0) return kSuccess;
  r->is_over = true;
  *done = 1;
  const bool are_told = sizes != nullptr && !objects().behaviour.is_mute;
  for (std::size_t i = 0; are_told && i < r->parts.size(); ++i) {
    sizes[i] = told_size(*c, r->parts[i], lie);
  }
  c->last_size = r->parts.empty() ? 0 : r->parts.front().arrived;
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
