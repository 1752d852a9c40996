// SpanLog: what a communicator did and when, of traced calls (RIFFLE_TRACE), on its way from the
// progress thread to the thread that writes it. Bounded: what finds no room is counted and dropped.
//
// Threads: one that adds, one that takes; neither waits for the other. Allocates when made only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace riffle {

enum class SpanKind : std::uint8_t {
  kCall,        // an all-reduce, from its posting to its end
  kChunk,       // a chunk of it, from its start to its end
  kPartialOut,  // a frame with a partial sum, from its handing over to the mesh until it has left
  kFinalOut,    // ... with a final sum
  kPartialIn,   // a frame that came, from its header until it was complete
  kFinalIn,
  kSum,  // adding up one fragment
};
inline constexpr int kSpanKinds = static_cast<int>(SpanKind::kSum) + 1;

// Numbers of nodes are those of the job. Offsets are bytes within the chunk.
struct Span {
  SpanKind kind = SpanKind::kCall;
  std::uint8_t level = 0;    // of a frame or a sum: of its group
  std::uint16_t lane = 0;    // of a chunk: its place among the plan's lanes, or the relaxed step's
  std::uint32_t group = 0;   // likewise, index within the level
  std::int32_t peer = -1;    // of a frame: the other end; of a sum: whose contribution was the last
  std::uint32_t term = 0;    // between two losses; calls and chunks count from 0 in each
  std::uint64_t number = 0;  // of the call; of all others: of the chunk
  std::uint64_t offset = 0;  // of a frame or a sum; of a chunk: the number of its call
  std::uint64_t bytes = 0;
  std::uint64_t begin_ns = 0, end_ns = 0;  // on the mesh's clock
};

class SpanLog {
 public:
  // Of a communicator. The writer comes every half a second, so this is room for 131,072 frames and
  // sums per second.
  static constexpr std::size_t kSpans = 1 << 16;
  static constexpr std::size_t kBytes = kSpans * sizeof(Span);  // 3.5 MiB

  explicit SpanLog(std::size_t spans = kSpans)
      : spans_(std::make_unique_for_overwrite<Span[]>(spans)), size_(spans) {}

  void add(const Span& span) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == size_) return drop();
    spans_[tail % size_] = span;
    tail_.store(tail + 1, std::memory_order_release);
  }
  // The adding thread: a span that could not even be begun.
  void drop() { dropped_.fetch_add(1, std::memory_order_relaxed); }

  // Moves the oldest one to `span`; false if there is none.
  bool take(Span* span) {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return false;
    *span = spans_[head % size_];
    head_.store(head + 1, std::memory_order_release);
    return true;
  }
  std::size_t room() const { return size_; }
  // So far.
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  const std::unique_ptr<Span[]> spans_;
  const std::size_t size_;
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace riffle
