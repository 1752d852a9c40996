// The processes that `riffle bench --sparse-peers` measures: one per node, each with all schemes,
// so that they take turns on the same gradients, connections and moments of the machine.
//
//   hub:    input <elements> <density> <teams> <order, commas, or -> <file or ->   worker: ready
//   hub:    select <step> <scheme>                                       worker: ready
//   hub:    go                                   worker: done <start_ns> <end_ns> <compute_us>
//   hub:    replay                               worker: done <start_ns> <end_ns> 0
//   hub:    check       worker: checked, then the numbers of Checked in their order
//   hub:    quit        worker: error <message>  at any time; it then ends
#pragma once

#include <cstdint>
#include <string>

#include "bench/peers/peer.h"
#include "bench/sparse/scheme.h"

namespace riffle::bench {

// What a worker says of its last call.
struct Checked {
  std::uint64_t digest = 0;  // of the result, all bits
  std::uint64_t result_entries = 0;
  // Sums with weights that tell elements apart: of the gradient, of what was not delivered, of the
  // result. The first, over all workers, is the second, over all workers, plus the third.
  double given = 0, undelivered = 0, result = 0;
  double magnitude = 0;  // of the result, as a measure of rounding errors
  Sent sent;
  Formula formula;
  double reselect_us = 0;
};
std::string to_text(const Checked& checked);
Result<Checked> checked_from(const std::string& text);

Peer sparse_peer();

}  // namespace riffle::bench
