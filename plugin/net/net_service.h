// NET, free of versions: point-to-point connections between two processes for NCCL's rings, trees
// and send/recv. plugin/entry translates every table version into these calls.
//
// Contract as in docs/nccl-contract.md (NET): connect and accept never wait; "not yet" is a null
// pointer without an error and the call is repeated with the same arguments. A send may be smaller
// than its receive, down to 0 bytes; larger is an error on both sides naming both sizes. Messages
// of equal tag match in posting order. Data is received in place: a send waits for its receive.
//
// Threads: listen/connect/accept/close from any one thread at a time per object; isend/irecv/test
// from one thread per object. Progress happens on the library's own thread, and for messages of up
// to 64 KiB also in isend, irecv and test (Reactor::poll).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plugin/net/net_options.h"
#include "plugin/transport/base/handle.h"
#include "plugin/transport/base/options.h"
#include "topology/base/status.h"

namespace riffle::net {

inline constexpr int kMaxRequests = 32;  // outstanding per connection and direction
inline constexpr int kMaxGroupedRecvs = 8;

class Listener;
class SendConnection;
class RecvConnection;
class Request;

// `comm_id` is NCCL's communicator hash, 0 if the table version does not tell.
Result<Listener*> listen(const TransportOptions& transport, int device, std::uint64_t comm_id,
                         Handle* handle);
// Null value: not connected yet, call again with the same handle (state is kept inside it).
Result<SendConnection*> connect(const TransportOptions& transport, const NetOptions& options,
                                int device, Handle* handle);
Result<RecvConnection*> accept(Listener* listener);

// Null request: the queue is full, call again.
Result<Request*> isend(SendConnection* connection, const void* data, std::size_t size, int tag);
Result<Request*> irecv(RecvConnection* connection, std::span<void* const> data,
                       std::span<const std::size_t> sizes, std::span<const int> tags);
// True when done; then sizes[i] holds the bytes of message i (one entry for a send; may be null)
// and the request is recycled. An error is final for the connection.
Result<bool> test(Request* request, int* sizes);

// Any state may be closed, also with requests outstanding: when close returns no user memory is
// touched any more. A close after the last completed request says GOODBYE and drains behind the
// scenes; exit() waits for that, 5 s at most.
void close(Listener* listener);
void close(SendConnection* connection);
void close(RecvConnection* connection);

// Forgets every request that touches [base, base + size): the fence of NCCL's deregMr. Rare: NCCL
// deregisters after the last request except on abort.
void fence(SendConnection* connection, const void* base, std::size_t size);
void fence(RecvConnection* connection, const void* base, std::size_t size);

}  // namespace riffle::net
