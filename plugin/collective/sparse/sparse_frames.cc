// SparseRunner's frames: what their headers say, and which of them are taken.
#include <algorithm>
#include <string>

#include "plugin/collective/sparse/sparse_frame.h"
#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/kernels/float_environment.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

// (Its owner knows whose message it was.)
Status refused(const SparseFrame& f, const std::string& why) {
  return remote_error("sparse message (segment " + std::to_string(f.segment) + ", round " +
                      std::to_string(f.round) + ", step " + std::to_string(f.step) + ", " +
                      std::to_string(f.total) + " bytes) refused: " + why);
}

}  // namespace

void SparseRunner::send_step(Slot& slot) {
  const std::size_t index = index_of(slot.round, slot.step);
  const auto message = slot.exchange().message();
  std::vector<std::uint8_t>& bytes = slot.outboxes[index];
  bytes.assign(message.begin(), message.end());
  const int peer = slot.places->node_at[static_cast<std::size_t>(slot.exchange().to())];
  SparseFrame frame;
  frame.segment = slot.seq;
  frame.total = static_cast<std::uint32_t>(bytes.size());
  frame.round = static_cast<std::uint8_t>(slot.round);
  frame.step = static_cast<std::uint8_t>(slot.step);
  frame.is_in_doubt = slot.heard.is_in_doubt;
  frame.least_digest = slot.heard.least_digest;
  frame.largest_digest = slot.heard.largest_digest;
  for (std::size_t at = 0; at < bytes.size(); at += kMaxFramePayload) {
    frame.offset = static_cast<std::uint32_t>(at);
    const std::size_t length = std::min<std::size_t>(kMaxFramePayload, bytes.size() - at);
    ++slot.parts_under_way;
    mesh_->send(peer, header_of(frame, length),
                {reinterpret_cast<const std::byte*>(bytes.data()) + at, length},
                kSparseCookie | slot.seq % kSlots, 1 + 2 * slot.seq);
  }
  if (options_.work == nullptr) return;
  add_to(options_.work->messages, 1);
  add_to(options_.work->bytes, bytes.size());
}

Result<std::byte*> SparseRunner::get_receive_buffer(int peer, const FrameHeader& header) {
  if (failed_) {
    if (discard_.size() < header.length) discard_.resize(kMaxFramePayload);
    return discard_.data();
  }
  const auto frame = frame_of<SparseFrame>(header);
  if (frame.segment < oldest_ || frame.segment >= oldest_ + kSlots) {
    return refused(frame, "expected are segments " + std::to_string(oldest_) + " to " +
                              std::to_string(oldest_ + kSlots - 1));
  }
  if (frame.round >= kRounds || frame.step >= most_steps_) {
    return refused(frame, "no such step");
  }
  const std::uint32_t total = frame.total;
  if (total == 0 || total > most_bytes_) {
    return refused(frame, "accepted are 1 to " + std::to_string(most_bytes_) + " bytes");
  }
  Slot& slot = slot_of(frame.segment);
  if (slot.phase == Phase::kFree) open(slot, frame.segment);
  Inbox& in = slot.inboxes[index_of(frame.round, frame.step)];
  const Heard heard{frame.is_in_doubt, frame.least_digest, frame.largest_digest};
  if (in.from < 0) {
    in.from = peer;
    in.heard = heard;
    in.bytes.assign(total, 0);
    in.unplaced = in.missing = total;
  }
  if (in.from != peer || in.bytes.size() != total || frame.offset > total ||
      header.length > total - frame.offset || header.length == 0 || header.length > in.unplaced) {
    return refused(frame, "it came before, or a part does not fit it");
  }
  in.unplaced -= header.length;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + frame.offset;
}

void SparseRunner::arrived(int /*peer*/, const FrameHeader& header, std::byte* /*payload*/) {
  if (failed_) return;
  const auto frame = frame_of<SparseFrame>(header);
  Slot& slot = slot_of(frame.segment);
  Inbox& in = slot.inboxes[index_of(frame.round, frame.step)];
  in.missing -= std::min<std::uint64_t>(in.missing, header.length);
  if (slot.phase != Phase::kRunning) return;
  const DefaultFloatEnvironment environment;
  advance(slot);
}

void SparseRunner::sent(std::uint64_t cookie) {
  if (failed_) return;
  Slot& slot = slots_[(cookie & ~kSparseCookie) % kSlots];
  RIFFLE_CHECK(slot.parts_under_way > 0, "a frame was sent that was not queued");
  if (--slot.parts_under_way == 0 && slot.phase == Phase::kDone) close(slot);
}

}  // namespace riffle
