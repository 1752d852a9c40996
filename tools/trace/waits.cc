#include "tools/trace/waits.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace riffle::tools::trace {
namespace {

using ChunkName = std::pair<std::uint32_t, std::uint64_t>;  // term, number

struct ChunkSpans {
  const Span* chunk = nullptr;
  std::vector<const Span*> sums, partials, finals;  // those that came
};

std::map<ChunkName, ChunkSpans> by_chunk(const std::vector<Span>& spans) {
  std::map<ChunkName, ChunkSpans> chunks;
  for (const Span& span : spans) {
    if (span.kind == SpanKind::kCall) continue;
    ChunkSpans& of = chunks[{span.term, span.number}];
    if (span.kind == SpanKind::kChunk) of.chunk = &span;
    if (span.kind == SpanKind::kSum) of.sums.push_back(&span);
    if (span.kind == SpanKind::kPartialIn) of.partials.push_back(&span);
    if (span.kind == SpanKind::kFinalIn) of.finals.push_back(&span);
  }
  return chunks;
}

auto place_of(const Span* span) { return std::tuple(span->level, span->group, span->offset); }

// When this node's own part of a sum was ready: the sum of the level above it, or the call's data.
std::uint64_t own_part_ns(const ChunkSpans& chunk, const Span& sum) {
  const Span* above = nullptr;
  for (const Span* other : chunk.sums) {
    const bool holds = other->level < sum.level && other->offset <= sum.offset &&
                       sum.offset < other->offset + other->bytes;
    if (holds && (above == nullptr || other->level > above->level)) above = other;
  }
  return above != nullptr ? above->end_ns : chunk.chunk->begin_ns;
}

void add_waits_for_sums(ChunkSpans& chunk, int rank, std::vector<Wait>* waits) {
  const auto by_place = [](const Span* a, const Span* b) { return place_of(a) < place_of(b); };
  std::sort(chunk.partials.begin(), chunk.partials.end(), by_place);
  for (const Span* sum : chunk.sums) {
    if (sum->peer == rank) continue;  // its own part was the last
    const auto [first, end] =
        std::equal_range(chunk.partials.begin(), chunk.partials.end(), sum, by_place);
    Wait wait{sum->peer, own_part_ns(chunk, *sum), 0};
    for (auto partial = first; partial != end; ++partial) {
      std::uint64_t& ns = (*partial)->peer == sum->peer ? wait.end_ns : wait.begin_ns;
      ns = std::max(ns, (*partial)->end_ns);
    }
    if (wait.begin_ns < wait.end_ns) waits->push_back(wait);
  }
}

void add_wait_for_results(const ChunkSpans& chunk, std::vector<Wait>* waits) {
  if (chunk.finals.empty()) return;
  const auto by_end = [](const Span* a, const Span* b) { return a->end_ns < b->end_ns; };
  const Span* const last = *std::max_element(chunk.finals.begin(), chunk.finals.end(), by_end);
  Wait wait{last->peer, chunk.chunk->begin_ns, last->end_ns};
  for (const auto* others : {&chunk.sums, &chunk.finals}) {
    for (const Span* other : *others) {
      const bool is_its = other->kind == SpanKind::kFinalIn && other->peer == last->peer;
      if (!is_its) wait.begin_ns = std::max(wait.begin_ns, other->end_ns);
    }
  }
  if (wait.begin_ns < wait.end_ns) waits->push_back(wait);
}

// Those for one peer that overlap become one.
std::vector<Wait> put_together(std::vector<Wait> waits) {
  std::sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) {
    return std::tuple(a.peer, a.begin_ns) < std::tuple(b.peer, b.begin_ns);
  });
  std::vector<Wait> together;
  for (const Wait& wait : waits) {
    Wait* const before = together.empty() ? nullptr : &together.back();
    if (before != nullptr && before->peer == wait.peer && wait.begin_ns <= before->end_ns) {
      before->end_ns = std::max(before->end_ns, wait.end_ns);
      before->times += wait.times;
    } else {
      together.push_back(wait);
    }
  }
  std::sort(together.begin(), together.end(),
            [](const Wait& a, const Wait& b) { return a.begin_ns < b.begin_ns; });
  return together;
}

}  // namespace

std::vector<Wait> waits_of(const std::vector<Span>& spans, int rank) {
  std::vector<Wait> waits;
  for (auto& [name, chunk] : by_chunk(spans)) {
    if (chunk.chunk == nullptr) continue;  // it was not over, or its span found no room
    add_waits_for_sums(chunk, rank, &waits);
    add_wait_for_results(chunk, &waits);
  }
  return put_together(std::move(waits));
}

}  // namespace riffle::tools::trace
