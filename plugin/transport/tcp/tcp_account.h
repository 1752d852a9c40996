// What the kernel has counted for the sending side of one TCP connection (TCP_INFO, Linux 4.10 and
// later): it costs nothing until asked.
#pragma once

#include <optional>

#include "plugin/transport/base/link.h"

namespace riffle {

// None where the kernel does not say, or the socket is gone.
std::optional<WireAccount> tcp_account(int socket);

}  // namespace riffle
