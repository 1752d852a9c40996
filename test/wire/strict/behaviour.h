// What the strict plugin does on demand, from the environment at init (and how it ends a process
// that broke the contract).
#pragma once

#include <string>

namespace strict {

struct Behaviour {
  int slow = 0;          // STRICT_NET_SLOW: connect, accept and test say "not yet" this many times
  int fail_at = 0;       // STRICT_NET_FAIL_AT: this isend, irecv or test, and all later ones, fail
  int lie = 0;           // STRICT_NET_LIE: added to the sizes that test tells of receives
  int requests = 32;     // STRICT_NET_REQUESTS: outstanding per connection; then null requests
  int devices = 2;       // STRICT_NET_DEVICES
  int init_result = 0;   // STRICT_NET_INIT: what init returns
  int refuse_mr = 0;     // STRICT_NET_REFUSE_MR: this regMr and all later ones fail
  int seed = 0;          // STRICT_NET_SEED: not 0: lies and faults at random (lies.h)
  bool early = false;    // test says that a receive is done, as large as the one before, too early
  bool meets = false;    // STRICT_NET_MEETS: connect and accept need each other's calls
  char never[16] = "";   // STRICT_NET_NEVER: connect, accept, isend, irecv or test: never completes
  bool offload = false;  // STRICT_NET_OFFLOAD: devices drive transfers themselves
  bool waits = false;    // STRICT_NET_WAITS: accept before the peer connects: a violation
  bool is_mute = false;  // STRICT_NET_MUTE: test tells no sizes, as google/nccl-fastsocket's
  std::string interface;  // STRICT_NET_INTERFACE: TCP over its IPv4 address; "": Unix sockets
};

Behaviour read_behaviour();

// What a test sets in place of it from now on, for all versions. Exported with C linkage as
// `strict_net_behave`.
using Behave = void(const Behaviour& behaviour);

// STRICT_NET_LACKS: the table's member of this name is null.
bool lacks(const char* function);

// Writes the sentence to stderr and aborts.
[[noreturn]] void violation(const std::string& what);

inline void demand(bool holds, const char* what) {
  if (!holds) violation(what);
}

}  // namespace strict
