// What COLLNET is told about an iallreduce call, and what more the profiler's events tell
// (identity.h): which collective of the job it belongs to, and which part of it it covers.
#pragma once

#include <array>
#include <cstdint>

namespace riffle {

// Bytes per element by NCCL's datatype number (int8, uint8, int32, uint32, int64, uint64, half,
// float, double, bfloat16, two kinds of 8-bit floats).
inline constexpr std::array<std::uint8_t, 12> kElementBytes = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

// The arguments of iallreduce. `coll` is any number that names the coll object in this process.
struct CallShape {
  std::uint64_t coll = 0;
  const void* send = nullptr;
  const void* recv = nullptr;
  std::uint64_t count = 0;  // elements
  int type = 0, op = 0;     // NCCL's numbers
};

// Elements are those of the whole collective. With several ranks per node the operand is the
// node's partial sum of the same elements.
struct CallIdentity {
  bool is_sure = false;       // false: nothing but why_not is set
  std::uint64_t comm_id = 0;  // NCCL's, the same on all ranks
  // Which all-reduce of the communicator this is: NCCL's running number, from 0, the same on all
  // ranks. Those that take another way than CollNet count too.
  std::uint64_t bucket = 0;
  const void* buffer = nullptr;  // the job's send buffer
  const void* output = nullptr;  // the job's receive buffer; the same in place
  std::uint64_t first_element = 0;
  std::uint64_t valid_elements = 0;  // from first_element on; may be 0. The rest is stale memory.
  std::uint64_t total_elements = 0;  // of the whole collective
  // The collective's last call. Nothing else depends on all events of its last channels.
  bool is_last = false;
  const char* why_not = "";  // static text
};

}  // namespace riffle
