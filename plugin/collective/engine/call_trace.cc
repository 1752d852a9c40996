#include "plugin/collective/engine/call_trace.h"

#include <numeric>
#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {

static_assert(CallTrace::kOpenFrames < 1u << CallTrace::kMarkBits);

CallTrace::CallTrace(const Mesh* mesh, const TraceOptions& options, std::vector<int> nodes,
                     int chunks)
    : mesh_(mesh),
      options_(options),
      nodes_(std::move(nodes)),
      chunk_began_ns_(static_cast<std::size_t>(chunks)),
      open_frames_(kOpenFrames),
      unused_(kOpenFrames),
      headers_(static_cast<std::size_t>(mesh->size())) {
  std::iota(unused_.rbegin(), unused_.rend(), 0u);
}

std::uint64_t CallTrace::now_ns() const { return mesh_->now_ns(); }

void CallTrace::posted(Operation& operation) {
  operation.is_traced = false;
  if (operation.collective != Collective::kAllReduce) return;
  operation.call = calls_++;
  operation.is_traced = operation.call % options_.every == 0;
  if (operation.is_traced) operation.posted_ns = now_ns();
}

void CallTrace::over(const Operation& operation) {
  Span span;
  span.kind = SpanKind::kCall;
  span.term = options_.term;
  span.number = operation.call;
  span.bytes = operation.length * size_of(operation.type);
  span.begin_ns = operation.posted_ns;
  span.end_ns = now_ns();
  options_.log->add(span);
}

Span CallTrace::span_of(SpanKind kind, const Chunk& chunk) const {
  Span span;
  span.kind = kind;
  span.term = options_.term;
  span.number = chunk.seq;
  return span;
}

void CallTrace::chunk_over(const Chunk& chunk) {
  Span span = span_of(SpanKind::kChunk, chunk);
  const std::size_t lanes = chunk.lanes == nullptr ? 0 : chunk.lanes->programs.size();
  span.lane = static_cast<std::uint16_t>(lanes == 0 ? chunk.operation->lane : chunk.seq % lanes);
  span.offset = chunk.operation->call;
  span.bytes = chunk.count * chunk.element_bytes;
  span.begin_ns = chunk_began_ns_[index_of(chunk)];
  span.end_ns = now_ns();
  options_.log->add(span);
}

Span CallTrace::span_of(const Chunk& chunk, int peer, const DataFrame& frame, std::size_t bytes,
                        bool is_out) const {
  const SpanKind partial = is_out ? SpanKind::kPartialOut : SpanKind::kPartialIn;
  const SpanKind final_sum = is_out ? SpanKind::kFinalOut : SpanKind::kFinalIn;
  Span span = span_of(frame.is_final ? final_sum : partial, chunk);
  span.level = static_cast<std::uint8_t>(frame.level);
  span.group = static_cast<std::uint32_t>(frame.group);
  span.peer = node(peer);
  span.offset = frame.offset * chunk.element_bytes;
  span.bytes = bytes;
  return span;
}

std::uint64_t CallTrace::sends(const Chunk& chunk, int peer, const DataFrame& frame,
                               std::size_t bytes) {
  if (unused_.empty()) {
    options_.log->drop();
    return 0;
  }
  const std::uint32_t place = unused_.back();
  unused_.pop_back();
  open_frames_[place] = span_of(chunk, peer, frame, bytes, true);
  open_frames_[place].begin_ns = now_ns();
  return place + 1;
}

void CallTrace::left(std::uint64_t mark) {
  const auto place = static_cast<std::uint32_t>(mark - 1);
  Span& span = open_frames_[place];
  span.end_ns = now_ns();
  options_.log->add(span);
  unused_.push_back(place);
}

void CallTrace::header_came(int peer, const std::byte* at) {
  for (OpenHeader& header : headers_[static_cast<std::size_t>(peer)]) {
    if (header.at != nullptr) continue;
    header = {at, now_ns()};
    return;
  }
}

Arrival CallTrace::came(int peer, const std::byte* at) {
  Arrival arrival;
  arrival.begin_ns = arrival.end_ns = now_ns();
  for (OpenHeader& header : headers_[static_cast<std::size_t>(peer)]) {
    if (header.at != at || at == nullptr) continue;
    arrival.begin_ns = std::exchange(header, {}).begin_ns;
    break;
  }
  return arrival;
}

void CallTrace::took(const Chunk& chunk, int peer, const DataFrame& frame, std::size_t bytes,
                     const Arrival& arrival) {
  Span span = span_of(chunk, peer, frame, bytes, false);
  span.begin_ns = arrival.begin_ns;
  span.end_ns = arrival.end_ns;
  options_.log->add(span);
}

void CallTrace::sum_ends(const Chunk& chunk, int level, int group, Range range, int last) {
  Span span = span_of(SpanKind::kSum, chunk);
  span.level = static_cast<std::uint8_t>(level);
  span.group = static_cast<std::uint32_t>(group);
  span.peer = node(last);
  span.offset = range.begin * chunk.element_bytes;
  span.bytes = range.size() * chunk.element_bytes;
  span.begin_ns = sum_began_ns_;
  span.end_ns = now_ns();
  options_.log->add(span);
}

}  // namespace riffle
