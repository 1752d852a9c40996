// All NET connections of a communicator: which rank talks to which on which channel, and how they
// are brought up (listen, exchange of handles, connect and accept in turns, registration).
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "lab/nccl_host/bootstrap.h"
#include "lab/nccl_host/net_link.h"
#include "topology/base/status.h"

namespace riffle::host {

// Collectives and point-to-point messages have connections of their own, as NCCL's connIndex 0
// and 1.
enum class Use { kCollective, kPointToPoint };

struct Endpoint {
  int channel = 0;
  int peer = 0;
  Use use = Use::kCollective;
  auto operator<=>(const Endpoint&) const = default;
};

class NetFabric {
 public:
  NetFabric(NetTable& net, void* context, std::size_t buffer_bytes)
      : net_(net), context_(context), buffer_bytes_(buffer_bytes) {}

  // Collective: every rank names where it sends to and receives from; both sides of a link must
  // name it. What is connected already is skipped. Bounded by deadline_ms.
  Status connect(Bootstrap& bootstrap, const std::vector<Endpoint>& sends,
                 const std::vector<Endpoint>& receives, int deadline_ms);
  NetLink& send_link(const Endpoint& e) { return *sends_.at(e); }
  NetLink& receive_link(const Endpoint& e) { return *receives_.at(e); }
  Status disconnect();  // the first error of the plugin, after trying everything

 private:
  struct Listening;
  Status listen_and_exchange(Bootstrap& bootstrap, const std::vector<Endpoint>& receives,
                             std::vector<Listening>* listening, std::vector<std::byte>* all);

  NetTable& net_;
  void* context_;
  std::size_t buffer_bytes_;
  std::map<Endpoint, std::unique_ptr<SendLink>> sends_;
  std::map<Endpoint, std::unique_ptr<ReceiveLink>> receives_;
};

}  // namespace riffle::host
