#include "plugin/transport/tcp/join_frames.h"

#include <sodium.h>

#include <algorithm>

namespace riffle {

FrameBody JoinFrame::encode() const {
  FrameBody body = pack(step, from, to);
  std::copy(proof.begin(), proof.end(), body.begin() + sizeof step + sizeof from + sizeof to);
  return body;
}

JoinFrame JoinFrame::decode(const FrameBody& body) {
  JoinFrame f;
  unpack(body, f.step, f.from, f.to);
  std::copy_n(body.begin() + sizeof step + sizeof from + sizeof to, f.proof.size(),
              f.proof.begin());
  return f;
}

LeaveFrame LeaveFrame::decode(const FrameBody& body) {
  LeaveFrame f;
  std::uint8_t is_loss = 0, never_open = 0;
  unpack(body, is_loss, never_open, f.frames);
  f.is_loss = is_loss != 0;
  f.never_open = never_open != 0;
  return f;
}

JoinProof proof_of(const JoinFrame& frame, std::uint64_t communicator, const LinkMark& link,
                   const Credentials& credentials) {
  std::array<std::uint8_t, sizeof communicator + sizeof frame.step + 2 * sizeof frame.from> said;
  put_fields(said.data(), communicator, frame.step, frame.from, frame.to);
  Key whole;
  derive_key(credentials.proof_key(), "riffle join", {ByteView(link), ByteView(said)}, &whole);
  JoinProof proof;
  std::copy_n(whole.begin(), proof.size(), proof.begin());
  return proof;
}

Status check_proof(const JoinFrame& frame, std::uint64_t communicator, const LinkMark& link,
                   const Credentials& credentials) {
  const JoinProof right = proof_of(frame, communicator, link, credentials);
  if (sodium_memcmp(right.data(), frame.proof.data(), right.size()) == 0) return Status::ok();
  return remote_error(
      "it does not know this communicator's secret, or its RIFFLE_KEY_FILE holds another key");
}

}  // namespace riffle
