#include "bench/messages/bare_loop.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <thread>

#include "plugin/transport/base/frame.h"

namespace riffle::bench {
namespace {

constexpr int kPollMs = 1000;

void let_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK); }

// Moves header and payload whole by `call`, which is writev or readv.
template <class Call>
bool move(Call call, int fd, std::byte* header, std::byte* payload, std::size_t size) {
  std::size_t done = 0;
  while (done < kFrameHeaderBytes + size) {
    std::array<iovec, 2> pieces;
    int count = 0;
    if (done < kFrameHeaderBytes) {
      pieces[static_cast<std::size_t>(count++)] = {header + done, kFrameHeaderBytes - done};
    }
    const std::size_t of_payload = done < kFrameHeaderBytes ? 0 : done - kFrameHeaderBytes;
    pieces[static_cast<std::size_t>(count++)] = {payload + of_payload, size - of_payload};
    const ssize_t n = call(fd, pieces.data(), count);
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

template <class Call>
bool move_all(Call call, const std::vector<Fd>& connections, const Traffic& traffic, double* ns) {
  std::vector<std::byte> payload(traffic.bytes, std::byte{1});
  std::array<std::byte, kFrameHeaderBytes> header{};
  const double begin_ns = thread_ns();
  for (std::size_t i = 0; i < traffic.frames; ++i) {
    const int fd = connections[i % connections.size()].get();
    if (!move(call, fd, header.data(), payload.data(), payload.size())) return false;
  }
  *ns = thread_ns() - begin_ns;
  return true;
}

}  // namespace

Result<BareLoop> BareLoop::connect(std::size_t peers) {
  BareLoop self;
  const NicAddress loopback = {.interface = "lo", .address = "127.0.0.1"};
  Endpoint endpoint;
  const Result<Fd> listener = listen_on(loopback, &endpoint);
  if (!listener) return listener.status();
  for (std::size_t i = 0; i < peers; ++i) {
    Result<Fd> out = start_connect(to_socket_address(endpoint, 0));
    if (!out) return out.status();
    pollfd p{listener->get(), POLLIN, 0};
    int error = 0;
    if (::poll(&p, 1, kPollMs) != 1) return timeout_error("a connection to itself did not come up");
    Fd in = accept_from(listener->get(), &error);
    p = {out->get(), POLLOUT, 0};
    if (!in.is_open() || ::poll(&p, 1, kPollMs) != 1) return system_error("accept");
    let_block(in.get());
    let_block(out->get());
    self.out_.push_back(std::move(*out));
    self.in_.push_back(std::move(in));
  }
  return self;
}

Result<Use> BareLoop::run(const Traffic& traffic) {
  Use use;
  bool is_received = false;
  std::thread receiver([&] { is_received = move_all(::readv, in_, traffic, &use.receive_ns); });
  // (A thread of its own too: the mesh's reactors are threads as well.)
  bool is_sent = false;
  std::thread sender([&] { is_sent = move_all(::writev, out_, traffic, &use.send_ns); });
  sender.join();
  receiver.join();
  if (!is_sent || !is_received) return system_error("the bare loop's connection");
  return use;
}

}  // namespace riffle::bench
