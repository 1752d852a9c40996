#include "plugin/collective/engine/send_window.h"

#include <algorithm>

#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"

namespace riffle {

void SendWindow::hand_over(const Waiting& frame) {
  under_way_ += frame.payload.size();
  mesh_->send(frame.peer, frame.header, frame.payload, frame.cookie, frame.priority);
}

void SendWindow::send(int peer, const FrameHeader& header, std::span<const std::byte> payload,
                      std::uint64_t cookie, std::uint64_t priority) {
  const Waiting frame{priority, next_order_++, peer, header, payload, cookie};
  // With room nothing waits. Without room to wait the window gives way: it only is for speed.
  if (has_room() || waiting_.size() == waiting_.capacity()) return hand_over(frame);
  waiting_.push_back(frame);
  std::push_heap(waiting_.begin(), waiting_.end());
}

void SendWindow::sent(std::size_t bytes) {
  RIFFLE_CHECK(bytes <= under_way_, "a frame has left that was not on its way");
  under_way_ -= bytes;
  while (has_room() && !waiting_.empty()) {
    std::pop_heap(waiting_.begin(), waiting_.end());
    const Waiting frame = waiting_.back();
    waiting_.pop_back();
    hand_over(frame);
  }
}

}  // namespace riffle
