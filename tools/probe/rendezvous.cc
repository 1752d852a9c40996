#include "tools/probe/rendezvous.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <thread>

#include "plugin/transport/handshake/handshake.h"
#include "tools/probe/deadline.h"

namespace riffle::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kVisitorMs = 2000;  // for one handshake; strangers must not keep the others waiting
constexpr auto kAgain = std::chrono::milliseconds(100);

// All bytes, or an error at the deadline. The socket does not block.
Status transfer(int fd, void* data, std::size_t size, short direction, Clock::time_point deadline) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    pollfd ready = {fd, direction, 0};
    const int n = poll(&ready, 1, left_ms(deadline));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) return timeout_error("it says nothing");
    const ssize_t moved =
        direction == POLLIN ? recv(fd, at, size, 0) : send(fd, at, size, MSG_NOSIGNAL);
    if (moved < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (moved <= 0) return remote_error("it closed the connection");
    at += moved;
    size -= static_cast<std::size_t>(moved);
  }
  return Status::ok();
}

void make_blocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK); }

// The visitor's rank.
Result<int> welcome(int fd, const Secret& secret) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(kVisitorMs);
  ChallengeBytes challenge = make_challenge();
  HelloBytes hello;
  if (Status s = transfer(fd, challenge.data(), challenge.size(), POLLOUT, deadline); !s) return s;
  if (Status s = transfer(fd, hello.data(), kVersionPrefixBytes, POLLIN, deadline); !s) return s;
  if (Status s = check_hello_prefix(hello.data()); !s) return s;
  if (Status s = transfer(fd, &hello[kVersionPrefixBytes], hello.size() - kVersionPrefixBytes,
                          POLLIN, deadline);
      !s) {
    return s;
  }
  const Result<Hello> opened = open_hello(hello, secret, challenge);
  if (!opened) return opened.status();
  WelcomeBytes answer = make_welcome(hello, secret);
  if (Status s = transfer(fd, answer.data(), answer.size(), POLLOUT, deadline); !s) return s;
  return static_cast<int>(opened->rank);
}

Status introduce(int fd, const Secret& secret, int rank, Clock::time_point deadline) {
  ChallengeBytes challenge;
  if (Status s = transfer(fd, challenge.data(), challenge.size(), POLLIN, deadline); !s) return s;
  if (Status s = check_challenge(challenge); !s) return s;
  Hello who;
  who.rank = static_cast<std::uint32_t>(rank);
  HelloBytes hello = make_hello(who, secret, challenge);
  WelcomeBytes answer;
  if (Status s = transfer(fd, hello.data(), hello.size(), POLLOUT, deadline); !s) return s;
  if (Status s = transfer(fd, answer.data(), answer.size(), POLLIN, deadline); !s) {
    return remote_error(s.message() + " (is RIFFLE_PROBE_SECRET the same everywhere?)");
  }
  return check_welcome(answer, hello, secret);
}

// Tries every address of every name once.
Result<Fd> connect_once(const MeetingPoint& meeting, Clock::time_point deadline) {
  Status failure = remote_error("no address");
  for (const std::string& host : meeting.hosts) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    const int error =
        getaddrinfo(host.c_str(), std::to_string(meeting.port).c_str(), &hints, &found);
    if (error != 0) {
      failure = remote_error(host + ": " + gai_strerror(error));
      continue;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
      Fd fd = Fd::make(
          [&] { return socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
      if (!fd.is_open()) continue;
      int why = 0;
      if (connect(fd.get(), a->ai_addr, a->ai_addrlen) != 0) {
        pollfd ready = {fd.get(), POLLOUT, 0};
        const int wait = std::min(left_ms(deadline), kVisitorMs);
        why = errno;
        if (why == EINPROGRESS) {
          socklen_t size = sizeof why;
          if (poll(&ready, 1, wait) <= 0) {
            why = ETIMEDOUT;
          } else {
            getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &why, &size);
          }
        }
      }
      if (why == 0) return fd;
      failure =
          remote_error(host + " port " + std::to_string(meeting.port) + ": " + errno_text(why));
    }
  }
  return failure;
}

}  // namespace

Result<Fd> open_door(int* port) {
  // IPv6 sockets take IPv4 too; not every machine has IPv6.
  for (const int family : {AF_INET6, AF_INET}) {
    const Fd fd = Fd::make([&] { return socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0); });
    if (!fd.is_open()) continue;
    const int on = 1, off = 0;
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    SocketAddress address;
    Endpoint any;
    any.is_ipv6 = family == AF_INET6;
    any.port = static_cast<std::uint16_t>(*port);
    if (any.is_ipv6) setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    address = to_socket_address(any, 0);
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0 ||
        listen(fd.get(), kMostHosts) != 0) {
      if (family == AF_INET6 && errno != EADDRINUSE) continue;
      return system_error("cannot listen on port " + std::to_string(*port) + ": " +
                          errno_text(errno) + " (--rendezvous HOST:PORT names another one)");
    }
    address.size = sizeof address.storage;
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.size);
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    *port = ntohs(any.is_ipv6 ? v6->sin6_port : v4->sin_port);
    return Fd::make([&] { return fcntl(fd.get(), F_DUPFD_CLOEXEC, 0); });
  }
  return system_error("cannot listen: " + errno_text(errno));
}

void let_in(const Fd& door, const Secret& secret, int size, int timeout_ms, Crew& crew) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  std::vector<Fd> here(static_cast<std::size_t>(size));
  std::string refused;  // the last one who knocked in vain
  int missing = size - 1;
  while (missing > 0) {
    pollfd ready = {door.get(), POLLIN, 0};
    const int n = poll(&ready, 1, left_ms(deadline));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    Fd visitor = Fd::make(
        [&] { return accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    if (!visitor.is_open()) continue;
    const Result<int> rank = welcome(visitor.get(), secret);
    if (!rank) {
      refused =
          to_text(remote_address_of(visitor.get())) + " was refused: " + rank.status().message();
      continue;
    }
    if (*rank < 1 || *rank >= size) continue;
    Fd& place = here[static_cast<std::size_t>(*rank)];
    if (place.is_open()) continue;
    make_blocking(visitor.get());
    place = std::move(visitor);
    --missing;
  }
  for (int r = 1; r < size; ++r) {
    const Fd& socket = here[static_cast<std::size_t>(r)];
    if (socket.is_open()) {
      crew.adopt("rank " + std::to_string(r), fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
      continue;
    }
    Crew::Member absent;
    absent.name = "rank " + std::to_string(r);
    absent.absent = "did not come within " + std::to_string(timeout_ms / 1000) + " s";
    if (!refused.empty()) absent.absent += "; " + refused;
    crew.members().push_back(std::move(absent));
  }
}

Result<Fd> go_to(const MeetingPoint& meeting, int rank, int timeout_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  Status failure;
  while (true) {
    Result<Fd> fd = connect_once(meeting, deadline);
    failure = fd.status();
    if (fd) {
      // Rank 0 serves one after the other: our turn may come late.
      failure = introduce(fd->get(), meeting.secret, rank, deadline);
      if (failure) {
        make_blocking(fd->get());
        return fd;
      }
    }
    if (Clock::now() + kAgain >= deadline) break;
    std::this_thread::sleep_for(kAgain);
  }
  return timeout_error("rank " + std::to_string(rank) + " did not reach rank 0 within " +
                       std::to_string(timeout_ms / 1000) + " s: " + failure.message());
}

}  // namespace riffle::tools
