#include "plugin/transport/nccl_net/send_side.h"

#include <algorithm>
#include <utility>

namespace riffle::nccl_net {

void SendSide::set_handle(std::span<const std::byte> handle) {
  std::ranges::copy(handle.first(kLibraryHandleBytes), handle_.begin());
  has_handle_ = true;
}

Status SendSide::connect() {
  if (comm_ == nullptr) {
    abi::NetDevHandle* offload = nullptr;
    const auto result = net_.table.connect(context_, device_, handle_.data(), &comm_, &offload);
    if (result != abi::kSuccess) {
      comm_ = nullptr;
      return failed_call(net_, "connect to " + peer_, result);
    }
  }
  return comm_ == nullptr ? Status::ok() : slots_.open(net_, comm_, peer_);
}

void SendSide::begin(std::size_t bytes) {
  messages_[begun_ % kMostSlots] = {nullptr, bytes};
  ++begun_;
}

Result<bool> SendSide::push() {
  bool moved = false;
  for (; taken_ < begun_; ++taken_) {
    Message& m = messages_[taken_ % kMostSlots];
    void* request = nullptr;
    const auto result = net_.table.isend(comm_, slots_.at(taken_), m.bytes, kTag, slots_.region(),
                                         nullptr, &request);
    if (result != abi::kSuccess) return failed_call(net_, "isend to " + peer_, result);
    if (request == nullptr) break;
    m.request = request;
    moved = true;
  }
  return moved;
}

Result<std::size_t> SendSide::take_done() {
  if (done_ == taken_) return std::size_t{0};
  Message& m = messages_[done_ % kMostSlots];
  int done = 0, size = 0;
  const auto result = net_.table.test(m.request, &done, &size);
  if (result != abi::kSuccess) {
    return failed_call(net_, "test of an isend to " + peer_, result);
  }
  if (done == 0) return std::size_t{0};
  m.request = nullptr;
  ++done_;
  return m.bytes;
}

void SendSide::close() {
  if (comm_ == nullptr) return;
  slots_.close(net_, comm_);
  if (net_.table.closeSend(std::exchange(comm_, nullptr)) != abi::kSuccess) slots_.keep();
}

}  // namespace riffle::nccl_net
