// What the model of NCCL's host side is made of (identity_world.h, identity_progress.h):
// communicators, collectives on their way to the network, threads, and the count of answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "plugin/identity/identity_book.h"

namespace riffle::identity {

inline constexpr std::uint64_t kSlotBytes = 512 << 10;  // of a channel, in one of the 8 slots
inline constexpr const char* kTypeNames[] = {"ncclInt8", "ncclInt32", "ncclFloat16", "ncclFloat32",
                                             "ncclFloat64"};
inline constexpr int kTypeNumbers[] = {0, 2, 6, 7, 8};
inline constexpr std::uint64_t kTypeBytes[] = {1, 4, 2, 4, 8};

inline std::uint64_t ceil_of(std::uint64_t a, std::uint64_t b) { return (a + b - 1) / b; }
inline const void* pointer(std::uint64_t a) { return reinterpret_cast<const void*>(a); }

// What may happen in a job besides its collectives.
struct Troubles {
  bool loses_events = false;
  bool captures_graphs = false;
  bool aborts = false;
};

struct Collective {
  std::size_t comm = 0;
  std::uint64_t comm_id = 0, number = 0, buffer = 0, output = 0, count = 0, chunk_bytes = 0,
                steps = 0;
  std::uint64_t channels = 1;
  int type = 0;  // index of kTypeNames
  int op = 0;
  bool is_registered = false;
  // The ProxyOp starts that the profiler is told of.
  std::vector<ProxyOp> events;
  void* context = nullptr;
  // Where its calls are.
  std::uint64_t step = 0, group = 0, element = 0;
};

struct Communicator {
  void* context = nullptr;
  std::uint64_t id = 0, coll = 0, region = 0, channels = 1, sequence = 0;
  std::size_t thread = 0;
  int nodes = 2, ranks = 2;
  bool is_alive = true;
  bool has_begun = false;
};

struct Thread {
  std::unique_ptr<CallQueue> queue = std::make_unique<CallQueue>();
  std::deque<Collective> posted, running;
};

struct Tally {
  std::uint64_t sure = 0, unsure = 0, wrong = 0, zero_valid = 0, registered = 0, looked = 0;
};

}  // namespace riffle::identity
