// Request: one operation of NCCL's on a communicator, from a fixed pool.
#pragma once

#include <cstddef>

#include "plugin/collective/engine/operation.h"
#include "plugin/collective/relaxed/staged_call.h"

namespace riffle::coll {

inline constexpr int kMaxRequests = 64;  // in flight per communicator

class Communicator;

class Request {
 public:
  Operation operation;  // of a staged call only the state
  StagedCall staged;
  bool is_staged = false;  // NCCL's progress thread only, as the next
  bool is_large = false;
  Communicator* owner = nullptr;
  std::size_t bytes = 0;
  const std::byte* send_begin = nullptr;  // what fence() compares
  std::size_t send_bytes = 0;
  const std::byte* recv_begin = nullptr;
  std::size_t recv_bytes = 0;
};

}  // namespace riffle::coll
