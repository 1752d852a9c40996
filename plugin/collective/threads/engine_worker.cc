#include "plugin/collective/threads/engine_worker.h"

namespace riffle {

EngineWorker::EngineWorker(MeshPart* part, const EngineOptions& options, std::function<void()> told)
    : part_(part),
      told_(std::move(told)),
      engine_(part, options, [this](int peer, const Status& why) { lost(peer, why); }),
      ring_(static_cast<std::size_t>(options.max_operations)) {
  part_->start({.sink = this,
                .on_wake =
                    [this] {
                      take_posted();
                      after_turn();
                    },
                .on_told = [this] { this->told(); }});
}

// ---- the owner's thread ----

void EngineWorker::with_engine(const std::function<void(Engine&)>& f) {
  part_->run_and_wait([&] {
    take_posted();
    f(engine_);
    after_turn();
  });
}

bool EngineWorker::has_room() {
  const Operation& next = ring_[tail_.load(std::memory_order_relaxed) % ring_.size()];
  if (next.state.load(std::memory_order_acquire) != Operation::State::kRunning) return true;
  owner_waits_ = true;
  part_->wake();  // or the thread might have looked at the flag too early
  return false;
}

void EngineWorker::post(const Operation& operation, SharedOperation* shared) {
  const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
  Operation& own = ring_[tail % ring_.size()];
  own.copy_call(operation);
  own.shared = shared;
  own.state.store(Operation::State::kRunning, std::memory_order_relaxed);
  tail_.store(tail + 1, std::memory_order_release);
  // What it only counts does not wake it, before there is much of that.
  const bool is_due = tail + 1 - head_.load(std::memory_order_relaxed) > ring_.size() / 2;
  if (shared != nullptr || is_due) part_->wake();
}

std::vector<std::pair<int, Status>> EngineWorker::take_lost() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_, {});
}

void EngineWorker::told() {
  Status failure;
  {
    const std::lock_guard lock(mutex_);
    failure = std::exchange(failure_, Status::ok());
  }
  if (!failure) part_->fail(failure);
  told_();
}

// ---- the part's thread ----

void EngineWorker::take_posted() {
  while (next_ != tail_.load(std::memory_order_acquire)) {
    engine_.submit(&ring_[next_++ % ring_.size()]);
    head_.store(next_, std::memory_order_relaxed);
  }
}

void EngineWorker::after_turn() {
  generations_.store(engine_.generations(), std::memory_order_relaxed);
  if (!owner_waits_.load(std::memory_order_relaxed)) return;
  const Operation& next = ring_[tail_.load(std::memory_order_relaxed) % ring_.size()];
  if (next.state.load(std::memory_order_relaxed) == Operation::State::kRunning) return;
  if (owner_waits_.exchange(false)) part_->tell();
}

Result<std::byte*> EngineWorker::get_receive_buffer(int peer, const FrameHeader& header) {
  if (header.type == FrameType::kData || header.type == FrameType::kCredit) {
    return engine_.get_receive_buffer(peer, header);
  }
  return remote_error("a frame of type " + std::to_string(static_cast<int>(header.type)) +
                      " on a further thread's connection");
}

void EngineWorker::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  has_moved_.store(true, std::memory_order_relaxed);
  engine_.arrived(peer, header, payload);
  after_turn();
}

void EngineWorker::sent(int /*peer*/, std::uint64_t cookie) {
  has_moved_.store(true, std::memory_order_relaxed);
  engine_.sent(cookie);
  after_turn();
}

void EngineWorker::lost(int peer, const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    lost_.emplace_back(peer, why);
  }
  part_->tell();
}

void EngineWorker::failed(const Status& why) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) failure_ = why;
  }
  part_->tell();
}

}  // namespace riffle
