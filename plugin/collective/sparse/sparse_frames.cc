// SparseRunner's frames: what their headers say, and which of them are taken.
#include <algorithm>
#include <string>

#include "plugin/collective/sparse/sparse_runner.h"
#include "plugin/kernels/float_environment.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

constexpr std::uint16_t kDoubtFlag = 1;
constexpr unsigned kRoundShift = 8;

int step_of(const FrameHeader& h) { return h.credit_class & ((1 << kRoundShift) - 1); }
int round_of(const FrameHeader& h) { return h.credit_class >> kRoundShift; }
std::uint64_t bytes_of(const FrameHeader& h) { return h.total & 0xffffffffu; }

// (The caller knows which node sent it.)
Status refused(const FrameHeader& h, const std::string& why) {
  return remote_error("sparse message (segment " + std::to_string(h.seq) + ", round " +
                      std::to_string(round_of(h)) + ", step " + std::to_string(step_of(h)) + ", " +
                      std::to_string(bytes_of(h)) + " bytes) refused: " + why);
}

}  // namespace

void SparseRunner::send_step(Slot& slot) {
  const std::size_t index = index_of(slot.round, slot.step);
  const auto message = slot.exchange().message();
  std::vector<std::uint8_t>& bytes = slot.outboxes[index];
  bytes.assign(message.begin(), message.end());
  const int peer = slot.places->node_at[static_cast<std::size_t>(slot.exchange().to())];
  FrameHeader header;
  header.type = FrameType::kSparse;
  header.seq = slot.seq;
  header.credit_class = static_cast<std::uint16_t>(slot.round << kRoundShift | slot.step);
  header.flags = slot.heard.is_in_doubt ? kDoubtFlag : 0;
  header.key = slot.heard.least_digest;
  header.total = std::uint64_t{slot.heard.largest_digest} << 32 | bytes.size();
  for (std::uint64_t at = 0; at < bytes.size(); at += kMaxFramePayload) {
    header.offset = at;
    header.length =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(kMaxFramePayload, bytes.size() - at));
    ++slot.parts_under_way;
    mesh_->send(peer, header,
                {reinterpret_cast<const std::byte*>(bytes.data()) + at, header.length},
                kSparseCookie | slot.seq % kSlots, 1 + 2 * slot.seq);
  }
  if (options_.work == nullptr) return;
  add_to(options_.work->messages, 1);
  add_to(options_.work->bytes, bytes.size());
}

Result<std::byte*> SparseRunner::place(int peer, const FrameHeader& header) {
  if (failed_) {
    if (discard_.size() < header.length) discard_.resize(kMaxFramePayload);
    return discard_.data();
  }
  if (header.seq < oldest_ || header.seq >= oldest_ + kSlots) {
    return refused(header, "expected are segments " + std::to_string(oldest_) + " to " +
                               std::to_string(oldest_ + kSlots - 1));
  }
  if (round_of(header) >= kRounds || static_cast<std::size_t>(step_of(header)) >= most_steps_) {
    return refused(header, "no such step");
  }
  const std::uint64_t total = bytes_of(header);
  if (total == 0 || total > most_bytes_) {
    return refused(header, "accepted are 1 to " + std::to_string(most_bytes_) + " bytes");
  }
  Slot& slot = slot_of(header.seq);
  if (slot.phase == Phase::kFree) open(slot, header.seq);
  Inbox& in = slot.inboxes[index_of(round_of(header), step_of(header))];
  const Heard heard{(header.flags & kDoubtFlag) != 0, header.key,
                    static_cast<std::uint32_t>(header.total >> 32)};
  if (in.from < 0) {
    in.from = peer;
    in.heard = heard;
    in.bytes.assign(total, 0);
    in.unplaced = in.missing = total;
  }
  if (in.from != peer || in.bytes.size() != total || header.offset > total ||
      header.length > total - header.offset || header.length == 0 || header.length > in.unplaced) {
    return refused(header, "it came before, or a part does not fit it");
  }
  in.unplaced -= header.length;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + header.offset;
}

void SparseRunner::arrived(int /*peer*/, const FrameHeader& header, std::byte* /*payload*/) {
  if (failed_) return;
  Slot& slot = slot_of(header.seq);
  Inbox& in = slot.inboxes[index_of(round_of(header), step_of(header))];
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
