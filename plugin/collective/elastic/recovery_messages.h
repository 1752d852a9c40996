// What survivors of a loss tell each other about their work, and the network restricted to them.
// Encoded little-endian; decoding checks every length and number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugin/collective/base/mode_participant.h"
#include "plugin/collective/base/plan_basis.h"
#include "topology/base/status.h"

namespace riffle {

// One node's work, told to the coordinator. Operations are numbered from the first of the
// communicator, alike on all nodes.
struct WorkAccount {
  std::uint64_t done = 0;   // this node has the result of all below
  std::uint64_t begun = 0;  // ... and has begun all below
  // Of those it has begun, which it could not begin again, for their input is overwritten.
  std::vector<std::uint64_t> unrepeatable;
  ModeSpan mode;  // what it knows to be decided (mode_participant.h)
};

// The coordinator's orders.
struct RecoveryOrder {
  std::string problem;              // not empty: no node goes on, and why
  std::uint64_t final_below = 0;    // operations below are over, all others begin again
  std::uint64_t begun_below = 0;    // but averages below, which are not averaged any more
  ModeSpan mode;                    // what any of them knows to be decided
  std::vector<std::uint8_t> plans;  // encoded PlanSet over the survivors, numbered anew
  std::uint64_t digest = 0;
};

std::vector<std::uint8_t> encode(const WorkAccount& account);
std::vector<std::uint8_t> encode(const RecoveryOrder& order);
std::vector<std::uint8_t> encode(const PlanBasis& basis);
Result<WorkAccount> decode_account(const std::vector<std::uint8_t>& bytes);
Result<RecoveryOrder> decode_order(const std::vector<std::uint8_t>& bytes);
// The basis of a communicator of `nodes` nodes; names are not carried.
Result<PlanBasis> decode_basis(const std::vector<std::uint8_t>& bytes, int nodes);

// What all may redo: an operation that is not over and that some node cannot begin again is a
// problem. Of modes that began one after the other the last one counts. Precondition: at least one
// account.
RecoveryOrder order_of(const std::vector<WorkAccount>& accounts);

// The same network with only these nodes (ascending), and the racks they stand in.
PlanBasis restrict_to(const PlanBasis& basis, const std::vector<int>& nodes);

}  // namespace riffle
