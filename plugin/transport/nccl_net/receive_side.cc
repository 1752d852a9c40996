#include "plugin/transport/nccl_net/receive_side.h"

#include <cstring>
#include <utility>

namespace riffle::nccl_net {

Status ReceiveSide::listen(std::span<std::byte, kLibraryHandleBytes> handle) {
  const auto result = net_.table.listen(context_, device_, handle.data(), &listener_);
  if (result == abi::kSuccess) return Status::ok();
  listener_ = nullptr;
  return failed_call(net_, "listen for " + peer_, result);
}

Status ReceiveSide::accept() {
  if (comm_ == nullptr) {
    abi::NetDevHandle* offload = nullptr;
    const auto result = net_.table.accept(listener_, &comm_, &offload);
    if (result != abi::kSuccess) {
      comm_ = nullptr;
      return failed_call(net_, "accept from " + peer_, result);
    }
  }
  if (comm_ == nullptr) return Status::ok();
  (void)net_.table.closeListen(std::exchange(listener_, nullptr));  // as NCCL does
  return slots_.open(net_, comm_, peer_);
}

Result<bool> ReceiveSide::post_one() {
  void *data = slots_.at(posted_), *region = slots_.region(), *profiler = nullptr;
  void* request = nullptr;
  std::size_t size = kSlotBytes;
  // A message that is told of too early shows no old number and no old frame.
  std::memset(data, 0, kMessageHeadBytes + kFrameHeaderBytes);
  int tag = kTag;
  const auto result = net_.table.irecv(comm_, 1, &data, &size, &tag, &region, &profiler, &request);
  if (result != abi::kSuccess) return failed_call(net_, "irecv from " + peer_, result);
  if (request == nullptr) return false;
  requests_[posted_ % kMostSlots] = request;
  ++posted_;
  return true;
}

Result<bool> ReceiveSide::post() {
  bool moved = false;
  while (posted_ - released_ < slots_.count()) {
    Result<bool> one = post_one();
    if (!one) return one;
    if (!*one) break;
    moved = true;
  }
  return moved;
}

Result<std::span<const std::byte>> ReceiveSide::take() {
  if (taken_ == posted_) return std::span<const std::byte>();
  void*& request = requests_[taken_ % kMostSlots];
  int done = 0, size = -1;
  const auto result = net_.table.test(request, &done, &size);
  if (result != abi::kSuccess) {
    return failed_call(net_, "test of an irecv from " + peer_, result);
  }
  if (done == 0) return std::span<const std::byte>();
  request = nullptr;
  tells_size_ = tells_size_ || size != -1;
  if (!tells_size_) size = static_cast<int>(kSlotBytes);
  if (size < 1 || static_cast<std::size_t>(size) > kSlotBytes) {
    return remote_error(net_.text + ": test of an irecv from " + peer_ + " tells of " +
                        std::to_string(size) + " bytes, possible are 1.." +
                        std::to_string(kSlotBytes));
  }
  return std::span<const std::byte>(slots_.at(taken_++), static_cast<std::size_t>(size));
}

void ReceiveSide::close() {
  if (comm_ != nullptr) {
    slots_.close(net_, comm_);
    if (net_.table.closeRecv(std::exchange(comm_, nullptr)) != abi::kSuccess) slots_.keep();
  }
  if (listener_ != nullptr) (void)net_.table.closeListen(std::exchange(listener_, nullptr));
}

}  // namespace riffle::nccl_net
