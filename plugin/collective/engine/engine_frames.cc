// Engine: frames. What arrives is checked against the plan and given to the pattern of its
// group; what a pattern wants sent leaves here.
#include <algorithm>
#include <string>

#include "plugin/collective/engine/engine.h"
#include "plugin/transport/base/mesh.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

// Older chunks first; within a chunk final sums first: another node waits for them.
std::uint64_t priority_of(std::uint64_t seq, bool is_final) { return 1 + seq * 2 + !is_final; }

// What sent() says back: the chunk's index, the length of the payload and, where the call is
// traced, its mark (call_trace.h).
constexpr int kCookieChunkBits = 16, kCookieLengthBits = 23;
constexpr int kCookieMarkAt = kCookieChunkBits + kCookieLengthBits;
constexpr std::uint64_t kCookieChunk = (1u << kCookieChunkBits) - 1;
constexpr std::uint64_t kCookieLength = (1u << kCookieLengthBits) - 1;
static_assert(kMaxFramePayload <= kCookieLength);
static_assert((1ull << (kCookieMarkAt + CallTrace::kMarkBits)) <= kSparseCookie);
std::uint64_t cookie_of(const Chunk& chunk, const FrameHeader& header, std::uint64_t mark) {
  return mark << kCookieMarkAt | std::uint64_t{header.length} << kCookieChunkBits |
         static_cast<std::uint64_t>(chunk.index);
}

int member_of(const LocalGroup& group, int rank) {
  const auto& members = group.group.members;
  const auto at = std::find(members.begin(), members.end(), rank);
  return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

// (Its owner knows whose frame it was.)
Status refuse(const DataFrame& frame, std::uint32_t bytes, const std::string& why) {
  return remote_error("frame (chunk " + std::to_string(frame.chunk) + ", level " +
                      std::to_string(frame.level) + ", group " + std::to_string(frame.group) +
                      ", offset " + std::to_string(frame.offset) + ", " + std::to_string(bytes) +
                      " bytes) refused: " + why);
}

}  // namespace

// ------------------------------------------------------------------------------------- receiving

// A final sum goes straight to the result, so its header is checked before it gets an address; a
// partial sum goes to a slot, whatever it turns out to be, and is checked when it is here.
Result<std::byte*> Engine::get_receive_buffer(int peer, const FrameHeader& header) {
  if (generations_.empty()) return remote_error("frame refused: no plan is installed here");
  if (failed_ || header.type != FrameType::kData) return discard_->data();
  const auto frame = frame_of<DataFrame>(header);
  Chunk& chunk = chunks_[frame.chunk % chunks_.size()];
  const bool runs = chunk.active && chunk.seq == frame.chunk;
  if (!frame.is_final) {
    if (!runs && frame.chunk < next_seq_) {
      return refuse(frame, header.length,
                    "we are at chunk " + std::to_string(next_seq_) + " already");
    }
    Result<std::byte*> slot = take_slot(peer, frame, header.length);
    if (trace_ && slot) trace_->header_came(peer, *slot);
    return slot;
  }
  if (!runs) return refuse(frame, header.length, "its chunk is not running here");
  const Result<Target> target = check(peer, frame, header.length, chunk);
  if (!target) return target.status();
  if (!group_executor::expect_final(chunk, target->group, frame.offset)) {
    return refuse(frame, header.length, "that sum came already");
  }
  std::byte* const at = chunk.at_recv(target->range.begin);
  if (trace_) trace_->header_came(peer, at);
  return at;
}

// The generation that a partial sum belongs to, also of a chunk that has not begun.
Result<Generation*> Engine::generation_of(const DataFrame& frame, std::uint32_t bytes) const {
  for (std::size_t i = 0; i < generations_.size(); ++i) {
    Generation* g = generations_[i].get();
    if ((g->number() & kGenerationMask) != frame.generation_bits()) continue;
    const bool is_below = g->first_seq != Generation::kNotAgreed && frame.chunk < g->first_seq;
    const bool is_beyond =
        i + 1 < generations_.size() && frame.chunk >= generations_[i + 1]->first_seq;
    if (is_below || is_beyond) break;
    return g;
  }
  return refuse(frame, bytes, "it belongs to another plan than ours");
}

Result<std::byte*> Engine::take_slot(int peer, const DataFrame& frame, std::uint32_t bytes) {
  const Result<Generation*> generation = generation_of(frame, bytes);
  if (!generation) return generation.status();
  if (!(*generation)->has_level(frame.level)) return refuse(frame, bytes, "no such level");
  SlotPool* pool = (*generation)->pool(peer, frame.level);
  if (pool == nullptr) return refuse(frame, bytes, "the plan has no such exchange");
  if (bytes > pool->slot_bytes()) {
    return refuse(frame, bytes, "at most " + std::to_string(pool->slot_bytes()) + " bytes fit");
  }
  std::byte* slot = pool->take();
  if (slot == nullptr) return refuse(frame, bytes, "more frames than credits");
  ++(*generation)->slots_taken;
  return slot;
}

Result<Engine::Target> Engine::check(int peer, const DataFrame& frame, std::uint32_t bytes,
                                     const Chunk& chunk) const {
  const Operation& o = *chunk.operation;
  const std::uint16_t call = call_code(o, chunk.generation->number());
  if (frame.call != call || frame.total != chunk.count || frame.step_class != chunk.step_class) {
    return refuse(frame, bytes,
                  "it belongs to another collective (" + std::to_string(frame.total) +
                      " elements, code " + std::to_string(frame.call) + ", step " +
                      std::to_string(frame.step_class) + ") than ours (" +
                      std::to_string(chunk.count) + ", " + std::to_string(call) + ", " +
                      std::to_string(chunk.step_class) +
                      "): all nodes must call the same collectives in the same order");
  }
  // There the result is this node's block alone: the rest has no memory.
  if (frame.is_final && !chunk.gathers()) {
    return refuse(frame, bytes, "a reduce-scatter has no final sums");
  }
  const int group = chunk.program->find(frame.level, frame.group);
  if (group < 0) return refuse(frame, bytes, "we are not in that group");
  const LocalGroup& local = chunk.program->groups[group];
  const int member = member_of(local, peer);
  if (member < 0 || member == local.me) return refuse(frame, bytes, "it is not in that group");
  const Range span = {chunk.runs[group].cuts.front(), chunk.runs[group].cuts.back()};
  if (frame.offset < span.begin || frame.offset >= span.end) {
    return refuse(frame, bytes, "offset outside the group's span");
  }
  const int owner = frame.is_final
                        ? group_executor::shard_of_final(chunk, group, member, frame.offset)
                        : group_executor::shard_of_partial(chunk, group, member, frame.offset);
  if (owner < 0) return refuse(frame, bytes, "that shard does not come this way");
  const Shard shard = chunk.shard(group, owner);
  if (frame.offset < shard.range.begin || frame.offset >= shard.range.end) {
    return refuse(frame, bytes, "offset outside the shard");
  }
  const Range range = shard.fragment(shard.fragment_at(frame.offset));
  const bool has_payload = frame.is_final || chunk.carries_partials();
  const std::uint64_t expected = has_payload ? range.size() * chunk.element_bytes : 0;
  if (frame.offset != range.begin || bytes != expected) {
    return refuse(frame, bytes,
                  "not a fragment: expected offset " + std::to_string(range.begin) + " and " +
                      std::to_string(expected) + " bytes");
  }
  if (!frame.is_final && group_executor::has_partial(chunk, group, member, frame.offset)) {
    return refuse(frame, bytes, "that partial sum came already");
  }
  return Target{group, member, range};
}

// Of one that passed check() when it got its address.
Engine::Target Engine::target_of_final(const Sum& sum, const Chunk& chunk) const {
  const int group = chunk.program->find(sum.frame.level, sum.frame.group);
  RIFFLE_CHECK(group >= 0, "a final sum of a group that its chunk does not have");
  return {group,
          member_of(chunk.program->groups[group], sum.peer),
          {sum.frame.offset, sum.frame.offset + sum.bytes / chunk.element_bytes}};
}

void Engine::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (failed_) return;
  switch (header.type) {
    case FrameType::kCredit:
      return take_credits(peer, frame_of<CreditFrame>(header));
    case FrameType::kLength:
      return take_length(peer, frame_of<LengthFrame>(header));
    default:
      return take({peer, frame_of<DataFrame>(header), header.length, payload,
                   trace_ ? trace_->came(peer, payload) : Arrival()});
  }
}

void Engine::take(const Sum& sum) {
  const auto& [peer, frame, bytes, payload, arrival] = sum;
  Chunk& chunk = chunks_[frame.chunk % chunks_.size()];
  if (!chunk.active || chunk.seq != frame.chunk) {
    if (frame.chunk < next_seq_) {
      return violation_(peer, refuse(frame, bytes, "its chunk is over here"));
    }
    early_[frame.chunk % chunks_.size()].push_back(sum);
    return;
  }
  Target target{};
  if (frame.is_final) {
    target = target_of_final(sum, chunk);
  } else {
    const Result<Target> checked = check(peer, frame, bytes, chunk);
    if (!checked) return violation_(peer, checked.status());
    target = *checked;
  }
  if (chunk.is_traced) trace_->took(chunk, peer, frame, bytes, arrival);
  contributor_ = peer;
  if (frame.is_final) {
    group_executor::final_arrived(*this, chunk, target.group, target.member, target.range);
  } else {
    if (options_.plants_early_release) give_back(*chunk.generation, peer, frame.level, payload);
    group_executor::partial_arrived(*this, chunk, target.group, target.member, target.range,
                                    payload);
  }
  finish_if_done(chunk);
  start_chunks();
}

void Engine::take_credits(int peer, const CreditFrame& frame) {
  for (const auto& generation : generations_) {
    if (generation->number() != frame.generation) continue;
    Flow* flow = generation->flow(peer, frame.level);
    if (flow == nullptr) {
      return violation_(
          peer, remote_error("it returned credits for level " + std::to_string(frame.level) +
                             ", where the plan has no exchange"));
    }
    flow->add_credits(frame.credits);
    return pump(*generation, peer, frame.level);
  }
  // Of a generation that has ended here: nothing waits for them.
}

void Engine::take_length(int peer, const LengthFrame& frame) {
  const Chunk& chunk = chunks_[frame.chunk % chunks_.size()];
  const bool runs = chunk.active && chunk.seq == frame.chunk;
  const Status taken = lengths_.arrived(peer, frame, runs ? chunk.operation : nullptr, next_seq_);
  if (!taken) return violation_(peer, taken);
  start_chunks();
}

// --------------------------------------------------------------------------------------- sending

FrameHeader Engine::header_for(const Chunk& chunk, int level, int index, bool final_sum,
                               Range range) const {
  DataFrame frame;
  frame.chunk = chunk.seq;
  frame.offset = range.begin;
  frame.total = chunk.count;
  frame.level = level;
  frame.group = index;
  frame.is_final = final_sum;
  frame.step_class = chunk.step_class;
  frame.call = call_code(*chunk.operation, chunk.generation->number());
  const bool has_payload = final_sum || chunk.carries_partials();
  return header_of(frame, has_payload ? range.size() * chunk.element_bytes : 0);
}

void Engine::send_partial(Chunk& chunk, int group, int member, Range range, const std::byte* data) {
  const LocalGroup& local = chunk.program->groups[group];
  const int peer = local.group.members[member];
  ++chunk.sends;
  chunk.generation->flow(peer, local.level)->push({chunk.seq, local.index, range, data});
  pump(*chunk.generation, peer, local.level);
}

// Through the window, except for what no plan's window was made for: blocks of calls that say
// themselves where they are.
void Engine::hand_over(const Chunk& chunk, int peer, const FrameHeader& header,
                       const std::byte* data, bool is_final_sum) {
  const std::span payload(data, header.length);
  const std::uint64_t mark =
      chunk.is_traced ? trace_->sends(chunk, peer, frame_of<DataFrame>(header), header.length) : 0;
  const std::uint64_t cookie = cookie_of(chunk, header, mark);
  const std::uint64_t priority = priority_of(chunk.seq, is_final_sum);
  if (chunk.operation->collective == Collective::kAllReduce) {
    send_window_.send(peer, header, payload, cookie, priority);
  } else {
    send_window_.send_now(peer, header, payload, cookie, priority);
  }
}

void Engine::send_final(Chunk& chunk, int group, int member, Range range) {
  const LocalGroup& local = chunk.program->groups[group];
  const FrameHeader header = header_for(chunk, local.level, local.index, true, range);
  ++chunk.sends;
  hand_over(chunk, local.group.members[member], header, chunk.at_recv(range.begin), true);
}

// Sends what credits and order allow on one flow.
void Engine::pump(Generation& generation, int peer, int level) {
  Flow& flow = *generation.flow(peer, level);
  PartialFrame frame;
  while (flow.pop(&frame)) {
    const Chunk& chunk = chunks_[frame.chunk % chunks_.size()];
    const FrameHeader header = header_for(chunk, level, frame.group_index, false, frame.range);
    hand_over(chunk, peer, header, frame.data, false);
  }
}

void Engine::sent(std::uint64_t cookie) {
  const std::uint64_t index = cookie & kCookieChunk;
  if (failed_ || index >= chunks_.size()) return;
  Chunk& chunk = chunks_[index];
  RIFFLE_CHECK(chunk.active && chunk.sends > 0, "a frame was sent that was not queued");
  --chunk.sends;
  if (const std::uint64_t mark = cookie >> kCookieMarkAt; mark > 0) trace_->left(mark);
  send_window_.sent(static_cast<std::size_t>(cookie >> kCookieChunkBits & kCookieLength));
  finish_if_done(chunk);
  start_chunks();
}

void Engine::sum_ends(const Chunk& chunk, int group, Range range) {
  const LocalGroup& local = chunk.program->groups[group];
  trace_->sum_ends(chunk, local.level, local.index, range, contributor_);
}

void Engine::release(Chunk& chunk, int group, int member, const void* slot) {
  if (options_.plants_early_release) return;
  const LocalGroup& local = chunk.program->groups[group];
  give_back(*chunk.generation, local.group.members[member], local.level, slot);
}

void Engine::give_back(Generation& generation, int peer, int level, const void* slot) {
  SlotPool& pool = *generation.pool(peer, level);
  pool.give_back(slot);
  --generation.slots_taken;
  const int credits = pool.take_returnable();
  if (credits == 0) return;
  CreditFrame frame;
  frame.generation = generation.number();
  frame.level = static_cast<std::uint16_t>(level);
  frame.credits = static_cast<std::uint16_t>(credits);
  mesh_->send(peer, header_of(frame), {}, kNoCookie, kUrgent);
}

}  // namespace riffle
