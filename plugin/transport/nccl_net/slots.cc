#include "plugin/transport/nccl_net/slots.h"

#include <algorithm>
#include <atomic>
#include <new>

namespace riffle::nccl_net {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMostBytes = 256 << 20;  // of a process
constexpr std::size_t kLeastSlots = 2;
constexpr int kLastOfFewRequests = 6;  // version of the table
constexpr std::size_t kFewRequests = 8;

std::atomic<std::size_t> granted_bytes{0};

}  // namespace

SlotGrant::SlotGrant(int peers, int version)
    : connections_(2 * static_cast<std::size_t>(std::max(peers, 1))) {
  const std::size_t most = version <= kLastOfFewRequests ? kFewRequests : kMostSlots;
  const std::size_t bytes_of_one = connections_ * kSlotBytes;
  std::size_t granted = granted_bytes.load();
  do {
    const std::size_t left = kMostBytes - std::min(granted, kMostBytes);
    of_each_ = std::clamp(left / bytes_of_one, kLeastSlots, most);
  } while (!granted_bytes.compare_exchange_weak(granted, granted + of_each_ * bytes_of_one));
}

SlotGrant::~SlotGrant() { granted_bytes -= connections_ * kSlotBytes * of_each_; }

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
