#include "plugin/net/net_recv.h"

#include "plugin/net/net_frames.h"
#include "plugin/net/net_limits.h"

namespace riffle::net {
namespace {

std::byte nowhere;  // the place of frames without payload

}  // namespace

RecvConnection::RecvConnection(Reactor& reactor)
    : Connection(reactor, Way::kReceives), posted_(kMaxPosted) {
  unannounced_.reserve(kMaxRequests);
}

void RecvConnection::start(Request& request) { unannounced_.push_back(&request); }

void RecvConnection::stop() {
  unannounced_.clear();
  posted_.assign(kMaxPosted, {});
}

// Announces what there is room for. Room runs out only while an old receive of another tag is still
// open; everything behind it then waits for its turn.
void RecvConnection::run() {
  while (!unannounced_.empty()) {
    Request& request = *unannounced_.front();
    for (; next_message_ < request.count; ++next_message_) {
      Posted& slot = posted_[next_id_ % kMaxPosted];
      if (slot.request != nullptr) return;
      Message& m = request.messages[static_cast<std::size_t>(next_message_)];
      m.id = next_id_++;
      slot = {.request = &request, .message = next_message_, .id = m.id};
      PostedFrame frame;
      frame.receive = m.id;
      frame.capacity = m.size;
      frame.tag = static_cast<std::uint32_t>(m.tag);
      link().send(header_of(frame), {}, 0, 0);
    }
    next_message_ = 0;
    unannounced_.erase(unannounced_.begin());
  }
}

RecvConnection::Posted* RecvConnection::find(std::uint64_t id) {
  Posted& slot = posted_[id % kMaxPosted];
  return slot.request != nullptr && slot.id == id ? &slot : nullptr;
}

Result<std::byte*> RecvConnection::get_receive_buffer(int peer, const FrameHeader& header) {
  if (header.type != FrameType::kMessage) return Connection::get_receive_buffer(peer, header);
  const auto frame = frame_of<MessageFrame>(header);
  Posted* const posted = find(frame.receive);
  if (posted == nullptr) {
    return remote_error("it sent data for receive " + std::to_string(frame.receive) +
                        ", which is not open");
  }
  Message& m = posted->request->messages[static_cast<std::size_t>(posted->message)];
  if (frame.total > m.size) {
    return remote_error("it sent a message of " + std::to_string(frame.total) + " bytes where " +
                        std::to_string(m.size) + " bytes were posted to receive");
  }
  if (m.has_begun && frame.total != m.total) return remote_error("it changed a message's size");
  if (frame.offset > frame.total || header.length > frame.total - frame.offset ||
      (header.length == 0 && frame.total != 0)) {
    return remote_error("it sent " + std::to_string(header.length) + " bytes at offset " +
                        std::to_string(frame.offset) + " of a message of " +
                        std::to_string(frame.total));
  }
  // What is on its way on another stream still counts: a byte too many would be written when the
  // receive is done.
  if (header.length > frame.total - m.placed) {
    return remote_error("a message arrived longer than it said");
  }
  m.has_begun = true;
  m.total = frame.total;
  m.placed += header.length;
  return header.length == 0 ? &nowhere : m.data + frame.offset;
}

void RecvConnection::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (header.type != FrameType::kMessage) return Connection::arrived(peer, header, payload);
  // Of two empty messages into one receive, the second finds it closed.
  const auto frame = frame_of<MessageFrame>(header);
  Posted* const posted = find(frame.receive);
  if (posted == nullptr) return fail(remote_error("a message arrived twice"));
  Request& request = *posted->request;
  Message& m = request.messages[static_cast<std::size_t>(posted->message)];
  m.done += header.length;
  if (m.done < m.total) return;
  posted->request = nullptr;
  if (--request.pending == 0) complete(request);
  if (!unannounced_.empty()) run();
}

}  // namespace riffle::net
