#include "plugin/collective/control_channel.h"

#include <algorithm>
#include <string>
#include <utility>

namespace riffle {
namespace {

constexpr std::uint64_t kPartBytes = 1u << 20;
constexpr std::uint64_t kBeforeData = 0;  // priority

}  // namespace

ControlChannel::ControlChannel(Mesh* mesh, Received received)
    : mesh_(mesh), received_(std::move(received)), incoming_(mesh->size()) {}

void ControlChannel::send(int peer, FrameType type, std::uint32_t kind,
                          std::vector<std::uint8_t> message) {
  if (message.empty()) message.push_back(0);  // so that every message has a part that arrives
  const std::uint64_t parts = (message.size() + kPartBytes - 1) / kPartBytes;
  const std::uint64_t cookie = kControlCookie | next_cookie_++;
  outgoing_.push_back({cookie, static_cast<int>(parts), std::move(message)});
  const std::vector<std::uint8_t>& bytes = outgoing_.back().bytes;
  for (std::uint64_t at = 0; at < bytes.size(); at += kPartBytes) {
    FrameHeader header;
    header.type = type;
    header.key = kind;
    header.offset = at;
    header.total = bytes.size();
    header.length = static_cast<std::uint32_t>(std::min(kPartBytes, bytes.size() - at));
    mesh_->send(peer, header,
                {reinterpret_cast<const std::byte*>(bytes.data()) + at, header.length}, cookie,
                kBeforeData);
  }
}

Result<std::byte*> ControlChannel::place(int peer, const FrameHeader& header) {
  Incoming& in = incoming_[peer];
  if (in.missing == 0) {
    if (header.total == 0 || header.total > kMaxMessageBytes) {
      return remote_error("control message of " + std::to_string(header.total) +
                          " bytes from node " + std::to_string(peer) + ", accepted are 1 to " +
                          std::to_string(kMaxMessageBytes));
    }
    in.bytes.assign(header.total, 0);
    in.missing = header.total;
  }
  if (header.total != in.bytes.size() || header.offset > header.total ||
      header.length > header.total - header.offset || header.length == 0) {
    return remote_error("control message from node " + std::to_string(peer) +
                        ": a part does not fit its message");
  }
  return reinterpret_cast<std::byte*>(in.bytes.data()) + header.offset;
}

void ControlChannel::arrived(int peer, const FrameHeader& header) {
  Incoming& in = incoming_[peer];
  in.missing -= std::min<std::uint64_t>(in.missing, header.length);
  if (in.missing == 0) received_(peer, header.key, std::exchange(in.bytes, {}));
}

void ControlChannel::sent(std::uint64_t cookie) {
  for (auto it = outgoing_.begin(); it != outgoing_.end(); ++it) {
    if (it->cookie != cookie) continue;
    if (--it->frames_left == 0) outgoing_.erase(it);
    return;
  }
}

}  // namespace riffle
