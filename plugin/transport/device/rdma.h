// Whether the network is better left to NCCL's own InfiniBand transport: Riffle carries TCP, so
// where NCCL could use RDMA, it is to take its own. Decided as NCCL's transport itself chooses its
// ports (src/transport/net_ib), before it is there to be asked. No state, any thread.
#pragma once

#include <functional>
#include <string>

#include "topology/host/rdma_ports.h"

namespace riffle {

struct RdmaChoice {
  std::string wish = "auto";       // RIFFLE_NET
  std::string ports = kRdmaPorts;  // RIFFLE_RDMA_PORTS
  std::string disabled;            // NCCL_IB_DISABLE
  std::string hca;                 // NCCL_IB_HCA
  std::string network;             // NCCL_NET: if it names Riffle, NCCL takes no other
  std::function<bool(const char* library)> loads;  // empty: the loader is asked
};

struct RdmaFinding {
  bool is_left_to_nccl = false;
  // Riffle carries TCP past ports that only another plugin can use (EFA's), which nothing has asked
  // for: the text is worth a warning.
  bool passes_ports_by = false;
  std::string text;  // what was found and what follows from it; empty: no RDMA port is active
};

RdmaFinding find_rdma(const RdmaChoice& choice);

// NCCL_IB_HCA: [^][=]name[:port],...; names are prefixes, with = exact, and ^ excludes.
bool is_chosen_hca(const std::string& rule, const std::string& device, int port);

}  // namespace riffle
