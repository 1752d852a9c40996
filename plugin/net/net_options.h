// The settings of NET connections, from the process's configuration.
#pragma once

#include <string>

#include "plugin/config/config.h"
#include "plugin/transport/tcp/link.h"
#include "topology/base/time.h"

namespace riffle::net {

inline LinkOptions link_options(const std::string& peer, std::uint64_t communicator) {
  return {.peer = peer,
          .communicator = communicator,
          .peer_timeout_ns = static_cast<std::uint64_t>(config().peer_timeout_s) * kSecond,
          .payload_crc = config().payload_crc};
}

inline std::uint64_t connect_deadline_ns() {
  return Reactor::now_ns() + static_cast<std::uint64_t>(config().connect_timeout_s) * kSecond;
}

}  // namespace riffle::net
