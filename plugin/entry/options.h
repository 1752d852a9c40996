// Options: what the knobs ask for, in the form that each room takes. Made here, at the border, and
// handed down: nothing below plugin/entry reads config().
#pragma once

#include <string>

#include "plugin/collective/options.h"
#include "plugin/config/config.h"
#include "plugin/identity/identity.h"
#include "plugin/net/net_options.h"
#include "plugin/transport/base/options.h"
#include "plugin/transport/device/rdma.h"
#include "plugin/transport/nccl_net/library_name.h"
#include "plugin/tuner/tuner.h"
#include "topology/base/status.h"

namespace riffle {

struct Options {
  std::string isa;  // kernels/reduce.h
  TransportOptions transport;
  NetOptions net;
  identity::Options identity;
  CollectiveOptions collective;
  TunerSettings tuner;
  nccl_net::LibraryChoice wire;    // RIFFLE_NET names a library that NET is
  RdmaFinding rdma;                // left to NCCL: no table does anything
  Status refusal;                  // not ok: NET refuses the job with it (encryption.h)
  bool has_collectives = true;     // false: COLLNET, tuner and profiler do nothing
  bool passes_on_collnet = false;  // ... but COLLNET is the library's, if it has one
};

// All but `rdma`, and what follows from it.
Options options_from(const Config& config);

// Of this process, from config() and this machine, made on first use; what holds for the whole
// process is put in force with it. Any thread.
const Options& options();

}  // namespace riffle
