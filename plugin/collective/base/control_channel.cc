#include "plugin/collective/base/control_channel.h"

#include <algorithm>
#include <string>
#include <utility>

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
  const std::uint64_t number = peers_[peer].next_out++;
  outgoing_.push_back({cookie, static_cast<int>(parts), std::move(message)});
  const std::vector<std::uint8_t>& bytes = outgoing_.back().bytes;
  for (std::uint64_t at = 0; at < bytes.size(); at += kPartBytes) {
    FrameHeader header;
    header.type = type;
    header.key = kind;
    header.seq = number;
    header.offset = at;
    header.total = bytes.size();
    header.length = static_cast<std::uint32_t>(std::min(kPartBytes, bytes.size() - at));
    mesh_->send(peer, header,
                {reinterpret_cast<const std::byte*>(bytes.data()) + at, header.length}, cookie,
                kBeforeData);
  }
}

Result<std::byte*> ControlChannel::place(int peer, const FrameHeader& header) {
  const auto refuse = [](const std::string& why) {  // the caller knows the peer
    return remote_error("control message: " + why);
  };
  Peer& from = peers_[peer];
  const std::uint64_t ahead = header.seq - from.next_in;
  if (header.seq < from.next_in || ahead >= kMaxMessagesAhead) {
    return refuse("number " + std::to_string(header.seq) + ", expected are " +
                  std::to_string(from.next_in) + " and at most " +
                  std::to_string(kMaxMessagesAhead - 1) + " more");
  }
  while (from.incoming.size() <= ahead) from.incoming.emplace_back();
  Incoming& in = from.incoming[ahead];
  if (!in.has_begun) {
    if (header.total == 0 || header.total > kMaxMessageBytes - from.bytes) {
      return refuse(std::to_string(header.total) + " bytes, accepted are 1 to " +
                    std::to_string(kMaxMessageBytes) + " under way");
    }
    in.has_begun = true;
    in.kind = header.key;
    in.bytes.assign(header.total, 0);
    in.unplaced = in.missing = header.total;
    from.bytes += header.total;
  }
  if (header.total != in.bytes.size() || header.key != in.kind || header.offset > header.total ||
      header.length > header.total - header.offset || header.length == 0 ||
      header.length > in.unplaced) {
    return refuse("a part does not fit its message");
  }
  in.unplaced -= header.length;
  return reinterpret_cast<std::byte*>(in.bytes.data()) + header.offset;
}

void ControlChannel::arrived(int peer, const FrameHeader& header, std::byte* /*payload*/) {
  Peer& from = peers_[peer];
  Incoming& part_of = from.incoming[header.seq - from.next_in];
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
