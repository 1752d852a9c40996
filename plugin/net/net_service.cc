// The functions that plugin/entry calls; the work is done in the files of the two connections, the
// listener and the connecting side.
#include "plugin/net/net_service.h"

#include "plugin/net/net_connecting.h"
#include "plugin/net/net_listener.h"
#include "plugin/net/net_recv.h"
#include "plugin/net/net_send.h"

namespace riffle::net {

Result<Listener*> listen(const TransportOptions& transport, int device, std::uint64_t comm_id,
                         Handle* handle) {
  return Listener::open(transport, device, comm_id, handle);
}

Result<SendConnection*> connect(const TransportOptions& transport, const NetOptions& options,
                                int device, Handle* handle) {
  return Connecting::poll(transport, options, device, handle);
}

Result<RecvConnection*> accept(Listener* listener) { return listener->accept(); }

Result<Request*> isend(SendConnection* connection, const void* data, std::size_t size, int tag) {
  Result<Request*> request = connection->claim(1);
  if (!request || *request == nullptr) return request;
  Message& m = (*request)->messages[0];
  m.data = static_cast<std::byte*>(const_cast<void*>(data));
  m.size = size;
  m.tag = tag;
  connection->submit(*request);
  return request;
}

Result<Request*> irecv(RecvConnection* connection, std::span<void* const> data,
                       std::span<const std::size_t> sizes, std::span<const int> tags) {
  const std::size_t count = data.size();
  if (count < 1 || count > kMaxGroupedRecvs || sizes.size() != count || tags.size() != count) {
    return invalid_argument("a receive of " + std::to_string(count) + " messages; 1 to " +
                            std::to_string(kMaxGroupedRecvs) + " are possible");
  }
  Result<Request*> request = connection->claim(static_cast<int>(count));
  if (!request || *request == nullptr) return request;
  for (std::size_t i = 0; i < count; ++i) {
    Message& m = (*request)->messages[i];
    m.data = static_cast<std::byte*>(data[i]);
    m.size = sizes[i];
    m.tag = tags[i];
  }
  connection->submit(*request);
  return request;
}

Result<bool> test(Request* request, int* sizes) {
  return request->connection->test(request, sizes);
}

void close(Listener* listener) { Listener::close(listener); }
void close(SendConnection* connection) { Connection::close(connection); }
void close(RecvConnection* connection) { Connection::close(connection); }

void fence(SendConnection* connection, const void* base, std::size_t size) {
  connection->fence(base, size);
}
void fence(RecvConnection* connection, const void* base, std::size_t size) {
  connection->fence(base, size);
}

}  // namespace riffle::net
