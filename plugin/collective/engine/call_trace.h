// CallTrace: what an engine writes into the trace (plugin/telemetry/span_log.h): every `every`-th
// all-reduce, its chunks, frames and sums. Engines of other calls pay a branch per frame.
//
// Nodes number all-reduces alike, so all trace the same ones. A frame may come before its call
// begins here: its times are kept beside it (Arrival) until the call is known.
//
// Threads: the engine's. Allocates when made only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugin/collective/engine/chunk.h"
#include "plugin/collective/engine/trace_options.h"
#include "plugin/collective/engine/wire.h"

namespace riffle {

class Mesh;

// When a frame came: from its header until it was complete.
struct Arrival {
  std::uint64_t begin_ns = 0, end_ns = 0;
};

class CallTrace {
 public:
  // Sent frames of traced calls that wait or are on their way at once; what comes on top is counted
  // as dropped.
  static constexpr std::size_t kOpenFrames = 1 << 14;
  static constexpr std::size_t kBytes = kOpenFrames * (sizeof(Span) + sizeof(std::uint32_t));

  // `nodes`: the job's numbers of the mesh's nodes, where those are not their own.
  CallTrace(const Mesh* mesh, const TraceOptions& options, std::vector<int> nodes, int chunks);

  // Numbers an all-reduce, and decides whether it is traced.
  void posted(Operation& operation);
  void over(const Operation& operation);
  void chunk_began(const Chunk& chunk) { chunk_began_ns_[index_of(chunk)] = now_ns(); }
  void chunk_over(const Chunk& chunk);

  // A frame is handed over; returns what left() is to be told, below 1 << kMarkBits.
  static constexpr int kMarkBits = 20;
  std::uint64_t sends(const Chunk& chunk, int peer, const DataFrame& frame, std::size_t bytes);
  void left(std::uint64_t mark);

  // The header of a data frame came, whose payload goes to `at`; and the frame is complete.
  void header_came(int peer, const std::byte* at);
  Arrival came(int peer, const std::byte* at);
  // ... and it was of this chunk.
  void took(const Chunk& chunk, int peer, const DataFrame& frame, std::size_t bytes,
            const Arrival& arrival);

  void sum_begins() { sum_began_ns_ = now_ns(); }
  // `last`: whose contribution completed it.
  void sum_ends(const Chunk& chunk, int level, int group, Range range, int last);

 private:
  // Headers of as many frames of a peer may be here before their payloads: a frame per stream.
  static constexpr std::size_t kStreams = 16;
  struct OpenHeader {
    const std::byte* at = nullptr;
    std::uint64_t begin_ns = 0;
  };

  std::uint64_t now_ns() const;
  static std::size_t index_of(const Chunk& chunk) { return static_cast<std::size_t>(chunk.index); }
  int node(int peer) const {
    return nodes_.empty() ? peer : nodes_[static_cast<std::size_t>(peer)];
  }
  Span span_of(SpanKind kind, const Chunk& chunk) const;
  Span span_of(const Chunk& chunk, int peer, const DataFrame& frame, std::size_t bytes,
               bool is_out) const;

  const Mesh* const mesh_;
  const TraceOptions options_;
  const std::vector<int> nodes_;
  std::uint64_t calls_ = 0;
  std::vector<std::uint64_t> chunk_began_ns_;  // by the chunk's index
  std::uint64_t sum_began_ns_ = 0;
  std::vector<Span> open_frames_;                          // by mark - 1
  std::vector<std::uint32_t> unused_;                      // places among them
  std::vector<std::array<OpenHeader, kStreams>> headers_;  // by peer
};

}  // namespace riffle
