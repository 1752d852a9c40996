#include "tools/probe/ranks.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "topology/fabric/hostlist.h"

namespace riffle::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFirstPort = 20000, kPorts = 10000;
constexpr int kMaxNodes = 65536;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number(const char* name, int otherwise) {
  const std::string text = environment(name);
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return text.empty() || *end != '\0' || value < 0 || value > kMaxNodes ? otherwise
                                                                        : static_cast<int>(value);
}

// The same port on all nodes of a job, another one for the next job.
int port_of(const std::string& job) {
  return kFirstPort + static_cast<int>(std::hash<std::string>{}(job) % kPorts);
}

std::optional<Launch> slurm() {
  const int rank = number("SLURM_NODEID", -1);
  const int nodes = number("SLURM_STEP_NUM_NODES", number("SLURM_NNODES", 0));
  if (rank < 0 || nodes < 2) return {};
  Launch launch{rank, number("SLURM_LOCALID", 0), nodes, "Slurm", "", 0};
  std::vector<std::string> names;
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (names.empty() && !environment(list).empty())
      (void)expand_hostlist(environment(list), names);
  }
  if (!names.empty()) launch.host = names.front();
  launch.port =
      port_of("slurm " + environment("SLURM_JOB_ID") + "." + environment("SLURM_STEP_ID"));
  return launch;
}

// mpirun tells where it runs itself, which is where it starts rank 0 unless told otherwise.
std::optional<Launch> open_mpi() {
  const int rank = number("OMPI_COMM_WORLD_RANK", -1), size = number("OMPI_COMM_WORLD_SIZE", 0);
  if (rank < 0 || size < 2) return {};
  const int local_size = std::max(1, number("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  const int local_rank = number("OMPI_COMM_WORLD_LOCAL_RANK", 0);
  Launch launch{rank, local_rank, size / local_size, "Open MPI", "", 0};
  const std::string uri =
      environment("OMPI_MCA_orte_hnp_uri");  // "123.0;tcp://10.0.0.1,10.1.0.1:9"
  const std::size_t begin = uri.find("tcp://");
  if (begin != std::string::npos) {
    const std::size_t from = begin + 6;
    launch.host = uri.substr(from, uri.find_first_of(",:", from) - from);
  }
  launch.port = port_of("openmpi " + uri);
  return launch;
}

std::optional<Launch> ranks_and_size() {
  const char* const names[][3] = {{"RANK", "WORLD_SIZE", "LOCAL_RANK"},
                                  {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"}};
  for (const auto& [rank_name, size_name, local_name] : names) {
    const int rank = number(rank_name, -1), size = number(size_name, 0);
    if (rank < 0 || size < 2) continue;
    const int local_size = std::max(1, number("LOCAL_WORLD_SIZE", number("MPI_LOCALNRANKS", 1)));
    Launch launch{rank,
                  number(local_name, 0),
                  size / local_size,
                  "the environment",
                  environment("MASTER_ADDR"),
                  0};
    // The port itself belongs to torchrun's store.
    launch.port = port_of("master " + environment("MASTER_ADDR") + environment("MASTER_PORT"));
    return launch;
  }
  return {};
}

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first != nullptr) freeaddrinfo(first);
  }
};

int connect_once(const Addresses& addresses) {
  for (const addrinfo* a = addresses.first; a != nullptr; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    timeval patience{2, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
      patience.tv_sec = 0;  // without limit again
      setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
      return fd;
    }
    close(fd);
  }
  return -1;
}

}  // namespace

Result<std::optional<Launch>> launched(const std::string& rendezvous) {
  std::optional<Launch> launch = slurm();
  if (!launch) launch = open_mpi();
  if (!launch) launch = ranks_and_size();
  if (!launch) return launch;
  if (!rendezvous.empty()) {
    const std::size_t colon = rendezvous.rfind(':');
    const std::string port = colon == std::string::npos ? "" : rendezvous.substr(colon + 1);
    launch->host = rendezvous.substr(0, colon);
    launch->port = std::atoi(port.c_str());
    if (launch->host.empty() || launch->port < 1 || launch->port > 65535) {
      return invalid_argument("--rendezvous " + rendezvous +
                              ": accepted is HOST:PORT with a port of 1..65535");
    }
  }
  if (launch->nodes < 2) return invalid_argument("probe needs at least 2 nodes");
  if (launch->host.empty()) {
    return invalid_argument("started by " + launch->by + " as one of " +
                            std::to_string(launch->nodes) +
                            ", but nothing tells where rank 0 runs: give --rendezvous HOST:PORT");
  }
  return launch;
}

Result<std::vector<int>> await_ranks(const Launch& launch, int deadline_ms) {
  const int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int off = 0, on = 1;
  setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(launch.port));
  if (listener < 0 || bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, 1024) != 0) {
    const Status status = system_error("cannot listen on port " + std::to_string(launch.port) +
                                       ": " + std::strerror(errno) + "; give another --rendezvous");
    if (listener >= 0) close(listener);
    return status;
  }
  const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
  std::vector<int> sockets;
  while (static_cast<int>(sockets.size()) < launch.nodes - 1) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready = {listener, POLLIN, 0};
    if (left <= 0 || poll(&ready, 1, static_cast<int>(left)) == 0) break;
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) sockets.push_back(fd);
  }
  close(listener);
  return sockets;
}

Result<int> join_rank_0(const Launch& launch, int deadline_ms) {
  const auto deadline = Clock::now() + std::chrono::milliseconds(deadline_ms);
  std::string why = "no answer";
  while (Clock::now() < deadline) {
    Addresses addresses;
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    const int error = getaddrinfo(launch.host.c_str(), std::to_string(launch.port).c_str(), &hints,
                                  &addresses.first);
    if (error != 0) {
      why = gai_strerror(error);
    } else if (const int fd = connect_once(addresses); fd >= 0) {
      return fd;
    } else {
      why = std::strerror(errno);
    }
    usleep(100'000);
  }
  return remote_error("cannot reach rank 0 at " + launch.host + ":" + std::to_string(launch.port) +
                      " (" + why + "); if it runs elsewhere give --rendezvous HOST:PORT");
}

}  // namespace riffle::tools
