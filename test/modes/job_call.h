// The calls of one step of a job: what each of them sums, and what NCCL's events tell of it.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "plugin/identity/call_identity.h"

namespace riffle::testing {

// Elements [first, first + valid) of a bucket that has `total`, in a call of `count`.
struct JobCall {
  std::uint32_t bucket = 0;
  std::uint64_t first = 0, valid = 0, total = 0, count = 0;
};

// Four buckets, one of them in two calls.
inline std::vector<JobCall> usual_calls() {
  return {{0, 0, 5000, 5000, 5000},
          {1, 0, 2500, 4400, 2500},
          {1, 2500, 1900, 4400, 2500},  // the rest is stale
          {2, 0, 100, 100, 100},        // no large sum: exact
          {3, 0, 2048, 2048, 2048}};
}

// Where the job keeps a bucket: nobody looks there.
inline const void* buffer_of(std::uint32_t bucket) {
  return reinterpret_cast<const void*>(std::uintptr_t{4096} * (bucket + 1));
}
inline std::uint32_t bucket_of(const void* buffer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(buffer) / 4096 - 1);
}

// Of a call of which all events came.
inline CallIdentity identity_of(const JobCall& c, std::uint64_t step) {
  CallIdentity id;
  id.is_sure = true;
  id.comm_id = 77;
  id.bucket = step * 100 + c.bucket;
  id.buffer = id.output = buffer_of(c.bucket);
  id.first_element = c.first;
  id.valid_elements = c.valid;
  id.total_elements = c.total;
  id.is_last = c.first + c.valid == c.total;
  return id;
}

// What a node's gradients in call `index` of a step are drawn from.
inline std::mt19937 values_of(int rank, std::uint64_t step, std::size_t index) {
  return std::mt19937(
      static_cast<unsigned>(step * 1000003 + index * 101 + static_cast<std::uint64_t>(rank)));
}

}  // namespace riffle::testing
