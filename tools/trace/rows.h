// The rows of one node in the picture of a trace: what it did, in ns of the reference's clock.
//
//   plan           plans, modes and losses, each a moment with its reason
//   calls, chunks  all-reduces and their chunks; where some overlap, in several rows
//   level 1, ...   a chunk's exchange within one group, from its first frame or sum to its last
//   waits          times in which sums, or results, had come but for one node's part: who that is
//   sums           adding up
//   to X, from X   frames, one behind the other: a frame begins when it was handed over (its header
//                  came), or when the one before it was complete, whichever is later
//
// Pure functions of the trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/trace/job_trace.h"

namespace riffle::tools::trace {

struct Slice {
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name;
  std::string args;            // a JSON object
  const Span* span = nullptr;  // of a frame
};

struct Row {
  std::string name;
  std::vector<Slice> slices;  // by time; they do not overlap, those of "plan" are moments
};

// `ahead_ns`: of the node's clock.
std::vector<Row> rows_of(const JobTrace& job, int node, std::int64_t ahead_ns);

// A JSON number of microseconds, exact.
std::string us_number(std::int64_t ns);
// "node 3 (host)"
std::string name_of(const JobTrace& job, int node);

}  // namespace riffle::tools::trace
