#include "plugin/collective/base/control_channel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

constexpr std::uint64_t kPartBytes = 1u << 20;
constexpr std::uint64_t kBeforeData = 0;  // priority

}  // namespace

ControlChannel::ControlChannel(Mesh* mesh, Received received)
    : mesh_(mesh), received_(std::move(received)), peers_(mesh->size()) {}

void ControlChannel::send(int peer, FrameType type, std::uint32_t kind,
                          std::vector<std::uint8_t> message) {
  if (message.empty()) message.push_back(0);  // so that every message has a part that arrives
  const std::uint64_t parts = (message.size() + kPartBytes - 1) / kPartBytes;
  const std::uint64_t cookie = kControlCookie | next_cookie_++;
  const std::uint64_t number = peers_[peer].next_out;
  outgoing_.push_back({cookie, static_cast<int>(parts), std::move(message)});
  const std::vector<std::uint8_t>& bytes = outgoing_.back().bytes;
  for (std::uint64_t at = 0; at < bytes.size(); at += kPartBytes) {
    ControlFrame frame;
    frame.number = number;
    frame.offset = at;
    frame.total = bytes.size();
    frame.kind = kind;
    FrameHeader header = header_of(frame, std::min(kPartBytes, bytes.size() - at));
    header.type = type;
    mesh_->send(peer, header,
                {reinterpret_cast<const std::byte*>(bytes.data()) + at, header.length}, cookie,
                kBeforeData);
    // Not before: where it throws, the next message takes the place of the one that never left.
    peers_[peer].next_out = number + 1;
  }
}

Result<std::byte*> ControlChannel::get_receive_buffer(int peer, const FrameHeader& header) {
  const auto refuse = [](const std::string& why) {  // the caller knows the peer
    return remote_error("control message: " + why);
  };
  const auto frame = frame_of<ControlFrame>(header);
  Peer& from = peers_[peer];
  const std::uint64_t ahead = frame.number - from.next_in;
  if (frame.number < from.next_in || ahead >= kMaxMessagesAhead) {
    return refuse("number " + std::to_string(frame.number) + ", expected are " +
                  std::to_string(from.next_in) + " and at most " +
                  std::to_string(kMaxMessagesAhead - 1) + " more");
  }
  while (from.incoming.size() <= ahead) from.incoming.emplace_back();
  Incoming& in = from.incoming[ahead];
  if (!in.has_begun) {
    if (frame.total == 0 || frame.total > kMaxMessageBytes - from.bytes) {
      return refuse(std::to_string(frame.total) + " bytes, accepted are 1 to " +
                    std::to_string(kMaxMessageBytes) + " under way");
    }
    in.has_begun = true;
    in.kind = frame.kind;
    in.bytes.assign(frame.total, 0);
    in.unplaced = in.missing = frame.total;
    from.bytes += frame.total;
  }
  if (frame.total != in.bytes.size() || frame.kind != in.kind || frame.offset > frame.total ||
      header.length > frame.total - frame.offset || header.length == 0 ||
      header.length > in.unplaced) {
    return refuse("a part does not fit its message");
  }
  in.unplaced -= header.length;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + frame.offset;
}

void ControlChannel::arrived(int peer, const FrameHeader& header, std::byte* /*payload*/) {
  const auto frame = frame_of<ControlFrame>(header);
  Peer& from = peers_[peer];
  Incoming& part_of = from.incoming[frame.number - from.next_in];
  part_of.missing -= std::min<std::uint64_t>(part_of.missing, header.length);
  while (!from.incoming.empty()) {
    Incoming& first = from.incoming.front();
    if (!first.has_begun || first.missing > 0) return;
    const Incoming message = std::move(first);
    from.incoming.erase(from.incoming.begin());
    from.bytes -= message.bytes.size();
    ++from.next_in;
    received_(peer, message.kind, message.bytes);
  }
}

void ControlChannel::sent(int /*peer*/, std::uint64_t cookie) {
  for (auto it = outgoing_.begin(); it != outgoing_.end(); ++it) {
    if (it->cookie != cookie) continue;
    if (--it->frames_left == 0) outgoing_.erase(it);
    return;
  }
}

}  // namespace riffle
