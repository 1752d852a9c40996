#include "plugin/net/net_send.h"

#include <algorithm>

#include "plugin/net/net_frames.h"
#include "plugin/net/net_limits.h"

namespace riffle::net {
namespace {

std::byte no_payload;  // the place of frames without payload

}  // namespace

SendConnection::SendConnection(Reactor& reactor, std::size_t streams, std::size_t piece_bytes)
    : Connection(reactor, Way::kSends),
      max_frames_in_link_(streams * 2 + 16),
      streams_(streams),
      piece_bytes_(piece_bytes),
      early_(kMaxPosted) {
  waiting_.reserve(kMaxRequests);
  flowing_.reserve(kMaxRequests);
  posted_.reserve(kMaxPosted);
}

void SendConnection::start(Request& request) { waiting_.push_back(&request); }

void SendConnection::stop() {
  waiting_.clear();
  flowing_.clear();
}

void SendConnection::run() {
  for (std::size_t i = 0; i < waiting_.size();) {
    Request& request = *waiting_[i];
    if (!match(request)) {
      ++i;
      continue;
    }
    if (has_failed()) return;
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    flowing_.push_back(&request);
  }
  feed();
}

// Finds the receive for `request`; the connection fails if it is too small.
bool SendConnection::match(Request& request) {
  Message& m = request.messages[0];
  const auto posting = std::find_if(posted_.begin(), posted_.end(),
                                    [&](const Posting& p) { return p.tag == m.tag; });
  if (posting == posted_.end()) return false;
  if (m.size > posting->capacity) {
    fail_both(invalid_argument("a message of " + std::to_string(m.size) + " bytes was sent where " +
                               std::to_string(posting->capacity) +
                               " bytes were posted to receive (tag " + std::to_string(m.tag) +
                               ")"));
    return true;
  }
  m.id = posting->id;
  posted_.erase(posting);
  return true;
}

void SendConnection::feed() {
  while (frames_in_link_ < max_frames_in_link_ && !flowing_.empty()) {
    Request& request = *flowing_.front();
    send_piece(request);
    const Message& m = request.messages[0];
    if (m.taken == m.size) flowing_.erase(flowing_.begin());
  }
}

void SendConnection::send_piece(Request& request) {
  Message& m = request.messages[0];
  // Enough pieces that every stream gets its share of a large message.
  const std::size_t piece =
      std::clamp(m.size / (2 * streams_), piece_bytes_, std::max(kMaxPieceBytes, piece_bytes_));
  const std::size_t length = std::min(piece, m.size - m.taken);
  MessageFrame frame;
  frame.receive = m.id;
  frame.offset = m.taken;
  frame.total = m.size;
  const std::span<const std::byte> payload(m.data + m.taken, length);
  m.taken += length;
  ++frames_in_link_;
  const auto cookie =
      static_cast<std::uint64_t>(length) << 8 | static_cast<std::uint64_t>(request.index);
  link().send(header_of(frame, length), payload, cookie, request.order);
}

void SendConnection::sent(int /*peer*/, std::uint64_t cookie) {
  Request& request = request_at(static_cast<int>(cookie & 255));
  Message& m = request.messages[0];
  m.done += cookie >> 8;
  --frames_in_link_;
  if (m.done == m.size) complete(request);
  feed();
}

Result<std::byte*> SendConnection::get_receive_buffer(int peer, const FrameHeader& header) {
  if (header.type != FrameType::kPosted) return Connection::get_receive_buffer(peer, header);
  if (header.length != 0) return remote_error("an announced receive with a payload");
  const std::uint64_t receive = frame_of<PostedFrame>(header).receive;
  if (receive - next_id_ >= kMaxPosted || posted_.size() >= kMaxPosted ||
      early_[receive % kMaxPosted].is_here) {
    return remote_error("it announced receive " + std::to_string(receive) + " out of turn");
  }
  return &no_payload;
}

void SendConnection::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (header.type != FrameType::kPosted) return Connection::arrived(peer, header, payload);
  const auto frame = frame_of<PostedFrame>(header);
  early_[frame.receive % kMaxPosted] = {.id = frame.receive,
                                        .tag = static_cast<int>(frame.tag),
                                        .capacity = frame.capacity,
                                        .is_here = true};
  while (early_[next_id_ % kMaxPosted].is_here && posted_.size() < kMaxPosted) {
    Posting& next = early_[next_id_++ % kMaxPosted];
    next.is_here = false;
    posted_.push_back(next);
  }
  run();
}

}  // namespace riffle::net
