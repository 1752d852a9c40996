// COLLNET, free of versions: one communicator per NCCL coll object. plugin/entry translates every
// table version into these calls; collective/ implements them.
//
// Threads: listen, connect, fence and close come from NCCL's proxy service thread, the operations
// and test from its progress thread, both possibly at once on one object. Posting and testing small
// requests does part of the library's own work (Reactor::poll). Connect waits for the
// network, close at most 5 s for what it still has to send; fence waits at most 100 ms for the
// library's own thread. No other call waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/kernels/types.h"
#include "plugin/transport/base/handle.h"
#include "plugin/transport/base/options.h"
#include "topology/base/status.h"

namespace riffle {
struct CollectiveOptions;  // options.h
}

namespace riffle::coll {

class Listener;
class Communicator;
class Request;

Result<Listener*> listen(const TransportOptions& options, int device, std::uint64_t comm_id,
                         Handle* handle);
void close(Listener* listener);

// Collective: every node calls it with the same handles; returns on every node the same outcome
// within RIFFLE_CONNECT_TIMEOUT and half a second. `rank` is NCCL's idea of our place; the blobs
// decide (we look for our own). Checks plugin version, knob digest and plan checksum across nodes;
// an error names the node and the knob. Null: nothing is wrong, but the nodes agreed to leave
// all-reduces to NCCL (RIFFLE_COLLNET=off, or auto where NCCL's ring or tree would win); one INFO
// line on node 0 says why.
Result<Communicator*> connect(std::span<const Handle* const> handles, int rank, Listener* listener,
                              const CollectiveOptions& options);
void close(Communicator* communicator);

bool reduce_support(int nccl_type, int nccl_op);

// Null request: 64 are in flight, RIFFLE_KEEP_BYTES are in use, or the nodes are just agreeing on a
// mode; call again. Calls must come in the same order on all nodes. `coll`: what identity.h knows
// NCCL's object as; 0: nothing.
Result<Request*> all_reduce(Communicator* c, const void* send, void* recv, std::size_t count,
                            DataType type, ReduceOp op, std::uint64_t coll = 0);
// The vector of all nodes' blocks, n * bytes_per_rank bytes, seen through the window
// [window_offset, window_offset + window_bytes): `send` points at the part of the own block inside
// the window, `recv` takes the window.
Result<Request*> all_gather(Communicator* c, const void* send, void* recv,
                            std::size_t bytes_per_rank, std::size_t window_offset,
                            std::size_t window_bytes);
// The mirror image: `send` is the window of the whole vector, `recv` the own block's part of it.
Result<Request*> reduce_scatter(Communicator* c, const void* send, void* recv,
                                std::size_t bytes_per_rank, std::size_t window_offset,
                                std::size_t window_bytes, DataType type, ReduceOp op);
// True when done; `bytes` (may be null) gets the operation's size. Errors are final for the object
// and come once per request.
Result<bool> test(Request* request, int* bytes);

// The fence of deregMr: when it returns nothing touches [base, base + size) any more; operations on
// it that were running have failed.
void fence(Communicator* c, const void* base, std::size_t size);

}  // namespace riffle::coll
