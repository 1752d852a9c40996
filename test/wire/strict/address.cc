#include "test/wire/strict/address.h"

#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace strict {
namespace {

// The address of a socket as the kernel's calls want it.
struct Name {
  union {
    sockaddr any;
    sockaddr_in tcp;
    sockaddr_un unix_socket;
  };
  socklen_t length;
};

Name name_of(const Address& address) {
  Name name{};
  if (address.is_tcp) {
    name.tcp = address.tcp;
    name.length = sizeof name.tcp;
    return name;
  }
  const std::string path =
      "strict-net-" + std::to_string(address.process) + "-" + std::to_string(address.number);
  name.unix_socket.sun_family = AF_UNIX;
  std::memcpy(name.unix_socket.sun_path + 1, path.data(), path.size());
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return name;
}

// -1 and closed where `is_good` is not.
int kept_if(bool is_good, int fd) {
  if (is_good || fd < 0) return fd;
  ::close(fd);
  return -1;
}

int socket_for(const Address& address, int flags) {
  const int fd =
      ::socket(address.is_tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
  const int on = 1;
  const bool is_good =
      !address.is_tcp || ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0;
  return kept_if(is_good, fd);
}

bool read_ipv4(const std::string& interface, sockaddr_in* ipv4) {
  ifreq request{};
  interface.copy(request.ifr_name, sizeof request.ifr_name - 1);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool is_read = fd >= 0 && ::ioctl(fd, SIOCGIFADDR, &request) == 0;
  (void)kept_if(false, fd);
  std::memcpy(ipv4, &request.ifr_addr, sizeof *ipv4);
  return is_read;
}

}  // namespace

int listen_at(const std::string& interface, Address* address) {
  static int count = 0;
  *address = {!interface.empty(), {}, ::getpid(), ++count};
  if (address->is_tcp && !read_ipv4(interface, &address->tcp)) return -1;
  const int fd = socket_for(*address, SOCK_NONBLOCK);
  Name name = name_of(*address);
  const bool listens = ::bind(fd, &name.any, name.length) == 0 && ::listen(fd, 1) == 0;
  if (address->is_tcp && ::getsockname(fd, &name.any, &name.length) == 0) address->tcp = name.tcp;
  return kept_if(listens, fd);
}

int connected_to(const Address& address) {
  const int fd = socket_for(address, 0);
  const Name name = name_of(address);
  return kept_if(::connect(fd, &name.any, name.length) == 0, fd);
}

}  // namespace strict
