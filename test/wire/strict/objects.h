// The objects of the strict plugin that are alive. Look-ups of what is not are violations.
#pragma once

#include <mutex>
#include <set>
#include <vector>

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
  bool has_accepted = false;
};

struct Objects {
  std::mutex mutex;
  Behaviour behaviour;
  Probe probe{};
  bool is_started = false;
  int transfers = 0;  // calls of isend, irecv and test so far
  std::set<Context*> contexts;
  std::set<Listener*> listeners;
  std::set<Connection*> connections;
  std::set<Request*> requests;  // over ones too, until their connection forgets them
  std::vector<riffle::abi::NetVPropsV12> virtual_devices;

  void demand_started() const { demand(is_started, "a call before init"); }

  bool has_device(int device) const {
    return device >= 0 && device < behaviour.devices + static_cast<int>(virtual_devices.size());
  }

  Context* live_context(void* context) {
    auto* const c = static_cast<Context*>(context);
    demand(contexts.contains(c), "an unknown context");
    return c;
  }
  Listener* live_listener(void* listener) {
    auto* const l = static_cast<Listener*>(listener);
    demand(listeners.contains(l), "an unknown listener, or one that is closed");
    return l;
  }
  Connection* live_connection(void* comm) {
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
