// Tables that do nothing but write down how they are called; every transfer completes at once. What
// a host side posts depends on nothing that a peer sends, so this is all that is needed to see it.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lab/nccl_host/tables/plugin_library.h"

namespace riffle::host {

struct CollNetCall {
  std::size_t count;
  int type;
  int op;
  std::size_t send_offset;  // from the start of the registered region
  std::size_t recv_offset;
  bool operator==(const CollNetCall&) const = default;
};

// A message as (tag, bytes): sent bytes, or what a receive allows for.
using Messages = std::vector<std::pair<int, std::size_t>>;

struct Recording {
  std::map<int, std::vector<CollNetCall>> all_reduces;  // by coll object, in the order of creation
  std::map<int, int> registrations, deregistrations;    // by coll object
  std::map<int, Messages> sends, receives;              // by connection
  bool close_after_deregister = true;  // closeColl never came before the last deregMr
};

struct Faults {
  int all_reduce_fails_at = -1;  // the n-th call, from 0
  int test_fails_at = -1;        // the test of the n-th call
  bool connect_fails = false;
  bool collnet = true;        // reports a device
  bool force_collnet = true;  // the tuner sets CollNetChain to 0 where it is available
};

// The recording is complete when all communicators are destroyed. It outlives the library.
std::shared_ptr<PluginLibrary> make_recording_library(Recording* recording, const Faults& faults);

}  // namespace riffle::host
