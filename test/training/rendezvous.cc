#include "test/training/rendezvous.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <vector>

#include "lab/nccl_host/bootstrap_wire.h"
#include "lab/nccl_host/hub.h"

namespace riffle::training {
namespace {

using Clock = host::Hub::Clock;

Clock::time_point deadline() {
  return Clock::now() + std::chrono::milliseconds(Rendezvous::kDeadlineMs);
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return invalid_argument("rendezvous \"" + path + "\": a path of 1 to " +
                            std::to_string(sizeof address.sun_path - 1) + " bytes is needed");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// Every rank's connection, in rank order; fewer when some did not come in time.
std::vector<int> accept_all(int listener, int ranks) {
  std::vector<int> fds(static_cast<std::size_t>(ranks), -1);
  const auto end = deadline();
  for (int come = 0; come < ranks;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd p{listener, POLLIN, 0};
    if (left.count() <= 0 || poll(&p, 1, static_cast<int>(left.count())) == 0) break;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    int rank = -1;
    if (host::transfer_all<false>(fd, &rank, sizeof rank, end) && rank >= 0 && rank < ranks &&
        fds[static_cast<std::size_t>(rank)] < 0) {
      fds[static_cast<std::size_t>(rank)] = fd;
      ++come;
    } else {
      close(fd);
    }
  }
  return fds;
}

}  // namespace

Status Rendezvous::serve(const std::string& path, int ranks) {
  const auto address = address_of(path);
  if (!address) return address.status();
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0 ||
      bind(listener, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      listen(listener, ranks) != 0) {
    const std::string reason = std::strerror(errno);
    if (listener >= 0) close(listener);
    return system_error("rendezvous at " + path + ": " + reason);
  }
  hub_ = std::thread([listener, path, ranks] {
    host::Hub hub(accept_all(listener, ranks), {});
    close(listener);
    unlink(path.c_str());
    hub.serve(deadline() + 2 * std::chrono::milliseconds(kDeadlineMs));
  });
  return Status::ok();
}

Result<std::unique_ptr<Rendezvous>> Rendezvous::join(const std::string& path, int rank, int ranks) {
  if (ranks < 1 || ranks > host::kRanksMax || rank < 0 || rank >= ranks) {
    return invalid_argument("rank " + std::to_string(rank) + " of " + std::to_string(ranks) +
                            ": ranks are 0 to N-1, N is 1 to " + std::to_string(host::kRanksMax));
  }
  const auto address = address_of(path);
  if (!address) return address.status();
  std::unique_ptr<Rendezvous> result(new Rendezvous);
  if (rank == 0) {
    if (Status s = result->serve(path, ranks); !s) return s;
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return system_error(std::string("socket: ") + std::strerror(errno));
  const auto end = deadline();
  while (connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    if (Clock::now() > end) {
      close(fd);
      return timeout_error("rendezvous at " + path + ": rank 0 did not come");
    }
    usleep(10000);
  }
  host::transfer_all<true>(fd, &rank, sizeof rank, end);
  result->bootstrap_ = std::make_unique<host::Bootstrap>(fd, rank, ranks, kDeadlineMs);
  return result;
}

Rendezvous::~Rendezvous() {
  bootstrap_.reset();
  if (hub_.joinable()) hub_.join();
}

}  // namespace riffle::training
