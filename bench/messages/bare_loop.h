// The least that could be done: blocking sockets, one writev per message with its header in front,
// one readv for both at the other end, which knows what comes from where. A thread for each end.
#pragma once

#include <vector>

#include "bench/messages/traffic.h"
#include "plugin/transport/reactor/socket.h"
#include "topology/base/status.h"

namespace riffle::bench {

class BareLoop {
 public:
  // One connection per peer, over loopback.
  static Result<BareLoop> connect(std::size_t peers);
  Result<Use> run(const Traffic& traffic);

 private:
  std::vector<Fd> out_, in_;
};

}  // namespace riffle::bench
