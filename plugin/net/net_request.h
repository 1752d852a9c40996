// Request: one isend or irecv. The caller's thread claims and recycles it, the reactor works on it
// in between; `state` hands it over: everything else is written before the state that publishes it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "plugin/net/net_service.h"

namespace riffle::net {

class Connection;

struct Message {
  std::byte* data = nullptr;  // only read for sends
  std::size_t size = 0;       // bytes to send; capacity of a receive
  int tag = 0;
  // Reactor thread, until the request is done:
  std::uint64_t id = 0;    // of the receive that it is matched with
  std::size_t taken = 0;   // sends: handed to the link
  std::size_t placed = 0;  // receives: bytes that have got their place
  std::size_t done = 0;    // bytes in the kernel, or received
  std::size_t total = 0;   // receives: what the sender says it sends
  bool has_begun = false;  // receives: `total` is known
};

class Request {
 public:
  enum class State : std::uint32_t { kFree, kRunning, kDone, kFailed };

  Connection* connection = nullptr;
  int index = 0;  // in the connection's table
  std::uint64_t order = 0;
  std::array<Message, kMaxGroupedRecvs> messages;
  int count = 1;            // of messages
  int pending = 1;          // messages that are not complete; reactor thread
  bool is_started = false;  // the reactor works on it; reactor thread
  bool is_large = false;    // the caller's thread
  std::atomic<State> state{State::kFree};
};

}  // namespace riffle::net
