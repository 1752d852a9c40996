#include "plugin/transport/nccl_net/slots.h"

#include <algorithm>
#include <new>

namespace riffle::nccl_net {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMostBytes = 256 << 20;  // of a communicator
constexpr int kLastOfFewRequests = 6;          // version of the table
constexpr std::size_t kFewRequests = 8;

}  // namespace

std::size_t slots_of_each(int peers, int version) {
  const std::size_t most = version <= kLastOfFewRequests ? kFewRequests : kMostSlots;
  const auto connections = 2 * static_cast<std::size_t>(std::max(peers, 1));
  return std::clamp(kMostBytes / (connections * kSlotBytes), std::size_t{2}, most);
}

Slots::~Slots() {
  if (is_registered_ || is_kept_) (void)memory_.release();
}

Status Slots::open(const Net& net, void* comm, const std::string& peer) {
  const std::size_t bytes = count_ * kSlotBytes;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, bytes)));
  if (memory_ == nullptr) throw std::bad_alloc();
  const auto result = net.table.regMr(comm, memory_.get(), bytes, abi::kPtrHost, &region_);
  is_registered_ = result == abi::kSuccess;
  if (is_registered_) return Status::ok();
  region_ = nullptr;
  return failed_call(net, "regMr of " + std::to_string(bytes) + " bytes for " + peer, result);
}

void Slots::close(const Net& net, void* comm) {
  if (is_registered_ && net.table.deregMr(comm, region_) != abi::kSuccess) keep();
  is_registered_ = false;
  region_ = nullptr;
}

}  // namespace riffle::nccl_net
