// The two frames by which a communicator comes to a link that is up, and leaves it without ending
// it. The header's communicator says which one; links handle them, no sink sees them.
//
//   JOIN    { kAsk, from, to, proof }     from the node of the higher rank
//   JOIN    { kWelcome, from, to, proof } its answer, once that side's communicator wants the peer
//   JOIN    { kRefuse }                   ... or will not have it on this link: connect a new one
//   JOIN    { kOpen }                     the asker has the welcome; frames may go both ways
//   LEAVE   { is_loss, frames }           this side's end, behind that many frames of it
//   LEAVE   { never_open }                ... of one that did not see it open
//
// A proof shows that its sender knows the secret of the communicator that is to join (that of the
// handle of node `to`, and RIFFLE_KEY_FILE, as in a handshake), and holds for this link alone. The
// link itself was proved by another communicator's secret. Pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "plugin/transport/base/frame.h"
#include "plugin/transport/handshake/connection.h"
#include "plugin/transport/handshake/handshake.h"

namespace riffle {

using JoinProof = std::array<std::uint8_t, 16>;

struct JoinFrame {
  static constexpr FrameType kType = FrameType::kJoin;
  enum Step : std::uint8_t { kAsk = 1, kWelcome = 2, kRefuse = 3, kOpen = 4 };
  std::uint8_t step = kAsk;
  std::uint32_t from = 0, to = 0;  // ranks, of the asker and of the other; zero in the last two
  JoinProof proof{};

  FrameBody encode() const;
  static JoinFrame decode(const FrameBody& body);
};

struct LeaveFrame {
  static constexpr FrameType kType = FrameType::kLeave;
  bool is_loss = false;     // not on purpose: the peer's sink hears lost() and not departed()
  bool never_open = false;  // its sender never saw the channel open: there was none
  std::uint64_t frames = 0;

  FrameBody encode() const { return pack(std::uint8_t{is_loss}, std::uint8_t{never_open}, frames); }
  static LeaveFrame decode(const FrameBody& body);
};

// `frame` without its proof.
JoinProof proof_of(const JoinFrame& frame, std::uint64_t communicator, const LinkMark& link,
                   const Credentials& credentials);
// Says what is wrong with it.
Status check_proof(const JoinFrame& frame, std::uint64_t communicator, const LinkMark& link,
                   const Credentials& credentials);

}  // namespace riffle
