// The objects of the strict plugin that are alive. Look-ups of what is not are violations.
#pragma once

#include <cstring>
#include <mutex>
#include <set>
#include <vector>

#include "plugin/abi/constants.h"
#include "plugin/abi/net_properties.h"
#include "test/wire/strict/behaviour.h"
#include "test/wire/strict/connection.h"
#include "test/wire/strict/probe.h"

namespace strict {

struct Context {
  std::uint64_t comm_id;
};

struct Listener {
  int fd;
  Context* context;  // null: the table has none
  int refusals;      // accepts that still say "not yet"
  int pending = -1;  // accepted, but the connecting side has not called again
  bool has_accepted = false;
};

struct Objects {
  std::mutex mutex;
  Behaviour behaviour;
  Probe probe{};
  bool is_started = false;
  bool is_torn_down = false;                         // the process exits
  int most_requests = riffle::abi::kNetMaxRequests;  // that NCCL of the table's time may have
  int transfers = 0;                                 // calls of isend, irecv and test so far
  int registrations = 0;                             // calls of regMr so far
  long calls = 0;        // of accept, connect, isend, irecv and test so far
  bool is_told = false;  // how to behave, by strict_net_behave
  std::set<Context*> contexts;
  std::set<Listener*> listeners;
  std::set<Connection*> connections;
  std::set<Request*> requests;  // over ones too, until their connection forgets them
  std::vector<riffle::abi::NetVPropsV12> virtual_devices;

  void demand_started() const {
    demand(is_started, "a call before init");
    demand_alive();
  }
  void demand_alive() const { demand(!is_torn_down, "a call while the process exits"); }
  bool never(const char* function) const { return std::strcmp(behaviour.never, function) == 0; }

  bool has_device(int device) const {
    return device >= 0 && device < behaviour.devices + static_cast<int>(virtual_devices.size());
  }

  Context* live_context(void* context) {
    demand_alive();
    auto* const c = static_cast<Context*>(context);
    demand(contexts.contains(c), "an unknown context");
    return c;
  }
  Listener* live_listener(void* listener) {
    demand_alive();
    auto* const l = static_cast<Listener*>(listener);
    demand(listeners.contains(l), "an unknown listener, or one that is closed");
    return l;
  }
  Connection* live_connection(void* comm) {
    demand_alive();
    auto* const c = static_cast<Connection*>(comm);
    demand(connections.contains(c), "an unknown connection, or one that is closed");
    return c;
  }
  Connection* live_connection(void* comm, bool sends) {
    Connection* const c = live_connection(comm);
    demand(c->sends == sends, "a connection of the other direction");
    return c;
  }
};

Objects& objects();

}  // namespace strict
