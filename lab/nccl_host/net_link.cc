#include "lab/nccl_host/net_link.h"

namespace riffle::host {
namespace {

constexpr int kSystemError = 2;  // NCCL's code
// NCCL's buffers for the LL and LL128 protocols: 8 slots of 512 threads x 8 lines of 16 bytes, and
// of 640 threads x 120 words of 8 bytes. They are registered like the Simple one and not used here.
constexpr std::size_t kLlBytes = 512 * 8 * 16 * kSteps;
constexpr std::size_t kLl128Bytes = 640 * 120 * 8 * kSteps;

}  // namespace

int NetLink::attach(void* comm) {
  comm_ = comm;
  const std::array<std::size_t, 3> sizes{kLlBytes, kLl128Bytes, buffer_bytes_};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (!buffers_[i].allocate(sizes[i])) return kSystemError;
    const int r = net_.register_memory(comm_, buffers_[i].data(), sizes[i], &mrs_[i]);
    if (r != kSuccess) return r;
    ++registered_;
  }
  mr_ = mrs_.back();
  for (std::size_t s = 0; s < kSteps; ++s)
    fifo_.slot[s] = buffers_.back().data() + s * step_bytes();
  return kSuccess;
}

int NetLink::detach() {
  if (comm_ == nullptr) return kSuccess;
  int first_error = kSuccess;
  auto keep = [&](int r) {
    if (first_error == kSuccess) first_error = r;
  };
  for (int i = 0; i < registered_; ++i)
    keep(net_.deregister_memory(comm_, mrs_[static_cast<std::size_t>(i)]));
  registered_ = 0;
  keep(close(comm_));
  comm_ = nullptr;
  return first_error;
}

void NetLink::begin() {
  base_ = round_up(step_, static_cast<std::uint64_t>(ops_.front().size.chunk));
  step_ = base_ + ops_.front().steps;
  posted_ = completed_ = done_ = 0;
  begun_ = true;
}

void NetLink::end_if_done() {
  if (done_ < ops_.front().steps) return;
  ops_.pop_front();
  begun_ = false;
}

int SendLink::progress(bool* moved) {
  if (ops_.empty()) return kSuccess;
  if (!begun_) {
    begin();
    fifo_.credit = base_ + kSteps;
    *moved = true;
  }
  const LinkOp& op = ops_.front();
  const auto message = static_cast<std::uint64_t>(op.size.slice);
  if (posted_ < op.steps && posted_ < done_ + kSteps && fifo_.tail >= base_ + posted_ + message) {
    const std::size_t slot = slot_of(posted_);
    void* request = nullptr;
    const int r = net_.isend(comm_, fifo_.slot[slot], fifo_.bytes[slot], tag_, mr_, &request);
    if (r != kSuccess) return r;
    if (request != nullptr) {
      requests_[slot] = request;
      posted_ += message;
      *moved = true;
    }
  }
  if (done_ < posted_) {
    int done = 0, size = 0;
    if (const int r = net_.test(requests_[slot_of(done_)], &done, &size); r != kSuccess) return r;
    if (done != 0) {
      done_ += message;
      fifo_.credit = base_ + done_ + kSteps;
      *moved = true;
      end_if_done();
    }
  }
  return kSuccess;
}

int ReceiveLink::progress(bool* moved) {
  if (ops_.empty()) return kSuccess;
  if (!begun_) {
    begin();
    *moved = true;
  }
  const LinkOp& op = ops_.front();
  const auto message = static_cast<std::uint64_t>(op.size.slice);
  if (posted_ < op.steps && posted_ < done_ + kSteps) {
    void* data = fifo_.slot[slot_of(posted_)];
    std::size_t capacity = op.capacity;
    int tag = tag_;
    void* request = nullptr;
    const int r = net_.irecv(comm_, 1, &data, &capacity, &tag, &mr_, &request);
    if (r != kSuccess) return r;
    if (request != nullptr) {
      requests_[slot_of(posted_)] = request;
      posted_ += message;
      *moved = true;
    }
  }
  if (completed_ < posted_) {
    int done = 0, size = 0;
    if (const int r = net_.test(requests_[slot_of(completed_)], &done, &size); r != kSuccess) {
      return r;
    }
    if (done != 0) {
      completed_ += message;
      fifo_.tail = base_ + completed_;
      *moved = true;
    }
  }
  // Slots are free again when the kernel has read them.
  while (done_ < completed_ && fifo_.head >= base_ + done_ + message) {
    done_ += message;
    *moved = true;
  }
  end_if_done();
  return kSuccess;
}

}  // namespace riffle::host
