// Engine, part 2: frames. What arrives is checked against the plan and given to the pattern of its
// group; what a pattern wants sent leaves here; the walk between levels is here too.
#include <algorithm>
#include <string>

#include "plugin/collective/engine/engine.h"
#include "plugin/collective/engine/wire.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

// Older chunks first; within a chunk final sums first: somebody is waiting for them.
std::uint64_t priority_of(std::uint64_t seq, bool is_final) { return 1 + seq * 2 + !is_final; }

// What sent() says back: the chunk's index and the length of the payload.
constexpr int kCookieChunkBits = 16;
constexpr std::uint64_t kCookieChunk = (1u << kCookieChunkBits) - 1;
std::uint64_t cookie_of(const Chunk& chunk, const FrameHeader& header) {
  return std::uint64_t{header.length} << kCookieChunkBits | static_cast<std::uint64_t>(chunk.index);
}

int member_of(const LocalGroup& group, int rank) {
  const auto& members = group.group.members;
  const auto at = std::find(members.begin(), members.end(), rank);
  return at == members.end() ? -1 : static_cast<int>(at - members.begin());
}

// (Whoever hears of it knows whose frame it was.)
Status refuse(const FrameHeader& header, const std::string& why) {
  return remote_error("frame (chunk " + std::to_string(header.seq) + ", level " +
                      std::to_string(level_of(header.key)) + ", group " +
                      std::to_string(index_of(header.key)) + ", offset " +
                      std::to_string(header.offset) + ", " + std::to_string(header.length) +
                      " bytes) refused: " + why);
}

}  // namespace

// ------------------------------------------------------------------------------------- receiving

Result<std::byte*> Engine::place(int peer, const FrameHeader& header) {
  if (generations_.empty()) return refuse(header, "no plan is installed here");
  if (failed_ || header.type != FrameType::kData) return discard_->data();
  const Chunk& chunk = chunks_[header.seq % chunks_.size()];
  const bool runs = chunk.active && chunk.seq == header.seq;
  if (runs) {
    Result<Target> target = resolve(peer, header, chunk);
    if (!target) return target.status();
    if (is_final(header.key)) return chunk.at_recv(target->range.begin);
  } else if (is_final(header.key)) {
    return refuse(header, "its chunk is not running here");
  } else if (header.seq < next_seq_) {
    return refuse(header, "we are at chunk " + std::to_string(next_seq_) + " already");
  }
  return take_slot(peer, header);
}

// The generation that a partial sum of a chunk that has not begun belongs to.
Result<Generation*> Engine::generation_of(const FrameHeader& header) const {
  for (std::size_t i = 0; i < generations_.size(); ++i) {
    Generation* g = generations_[i].get();
    if ((g->number() & kGenerationMask) != generation_bits(header.flags)) continue;
    const bool is_below = g->first_seq != Generation::kNotAgreed && header.seq < g->first_seq;
    const bool is_beyond =
        i + 1 < generations_.size() && header.seq >= generations_[i + 1]->first_seq;
    if (is_below || is_beyond) break;
    return g;
  }
  return refuse(header, "it belongs to another plan than ours");
}

// A place for a partial sum, also of a chunk that has not begun here.
Result<std::byte*> Engine::take_slot(int peer, const FrameHeader& header) {
  const Result<Generation*> generation = generation_of(header);
  if (!generation) return generation.status();
  const int level = level_of(header.key);
  if (!(*generation)->has_level(level)) return refuse(header, "no such level");
  SlotPool* pool = (*generation)->pool(peer, level);
  if (pool == nullptr) return refuse(header, "the plan has no such exchange");
  if (header.length > pool->slot_bytes()) {
    return refuse(header, "at most " + std::to_string(pool->slot_bytes()) + " bytes fit");
  }
  std::byte* slot = pool->take();
  if (slot == nullptr) return refuse(header, "more frames than credits");
  ++(*generation)->slots_taken;
  return slot;
}

Result<Engine::Target> Engine::resolve(int peer, const FrameHeader& header,
                                       const Chunk& chunk) const {
  const Operation& o = *chunk.operation;
  const std::uint16_t flags = frame_flags(o, chunk.generation->number());
  if (header.flags != flags || header.total != chunk.count ||
      header.credit_class != chunk.step_class) {
    return refuse(header, "it belongs to another collective (" + std::to_string(header.total) +
                              " elements, code " + std::to_string(header.flags) + ", step " +
                              std::to_string(header.credit_class) + ") than ours (" +
                              std::to_string(chunk.count) + ", " + std::to_string(flags) + ", " +
                              std::to_string(chunk.step_class) +
                              "): all nodes must call the same collectives in the same order");
  }
  const int group = chunk.program->find(level_of(header.key), index_of(header.key));
  if (group < 0) return refuse(header, "we are not in that group");
  const LocalGroup& local = chunk.program->groups[group];
  const int member = member_of(local, peer);
  if (member < 0 || member == local.me) return refuse(header, "it is not in that group");
  const Range span = {chunk.runs[group].cuts.front(), chunk.runs[group].cuts.back()};
  if (header.offset < span.begin || header.offset >= span.end) {
    return refuse(header, "offset outside the group's span");
  }
  const int owner = is_final(header.key)
                        ? group_executor::shard_of_final(chunk, group, member, header.offset)
                        : group_executor::shard_of_partial(chunk, group, member, header.offset);
  if (owner < 0) return refuse(header, "that shard does not come this way");
  const Shard shard = chunk.shard(group, owner);
  if (header.offset < shard.range.begin || header.offset >= shard.range.end) {
    return refuse(header, "offset outside the shard");
  }
  const Range range = shard.fragment(shard.fragment_at(header.offset));
  const bool has_payload = is_final(header.key) || chunk.carries_partials();
  const std::uint64_t bytes = has_payload ? range.size() * chunk.element_bytes : 0;
  if (header.offset != range.begin || header.length != bytes) {
    return refuse(header, "not a fragment: expected offset " + std::to_string(range.begin) +
                              " and " + std::to_string(bytes) + " bytes");
  }
  return Target{group, member, range};
}

void Engine::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (failed_) return;
  if (header.type == FrameType::kCredit) return take_credits(peer, header);
  if (header.type == FrameType::kLength) return take_length(peer, header);
  Chunk& chunk = chunks_[header.seq % chunks_.size()];
  if (!chunk.active || chunk.seq != header.seq) {
    early_[header.seq % chunks_.size()].push_back({peer, header, payload});
    return;
  }
  const Result<Target> target = resolve(peer, header, chunk);
  if (!target) return violation_(peer, target.status());
  contributor_ = peer;
  if (is_final(header.key)) {
    group_executor::final_arrived(*this, chunk, target->group, target->member, target->range);
  } else {
    if (options_.plants_early_release)
      give_back(*chunk.generation, peer, level_of(header.key), payload);
    group_executor::partial_arrived(*this, chunk, target->group, target->member, target->range,
                                    payload);
  }
  finish_if_done(chunk);
  start_chunks();
}

void Engine::take_credits(int peer, const FrameHeader& header) {
  const int level = header.credit_class;
  for (const auto& generation : generations_) {
    if (generation->number() != header.seq) continue;
    Flow* flow = generation->flow(peer, level);
    if (flow == nullptr) {
      return violation_(peer,
                        remote_error("it returned credits for level " + std::to_string(level) +
                                     ", where the plan has no exchange"));
    }
    flow->add_credits(header.credits);
    return pump(*generation, peer, level);
  }
  // Of a generation that has ended here: nobody waits for them.
}

void Engine::take_length(int peer, const FrameHeader& header) {
  const Chunk& chunk = chunks_[header.seq % chunks_.size()];
  const bool runs = chunk.active && chunk.seq == header.seq;
  const Status taken = lengths_.arrived(peer, header, runs ? chunk.operation : nullptr, next_seq_);
  if (!taken) return violation_(peer, taken);
  start_chunks();
}

// --------------------------------------------------------------------------------------- sending

FrameHeader Engine::header_of(const Chunk& chunk, int level, int index, bool final_sum,
                              Range range) const {
  FrameHeader h;
  h.seq = chunk.seq;
  h.key = frame_key(level, index, final_sum);
  h.flags = frame_flags(*chunk.operation, chunk.generation->number());
  h.offset = range.begin;
  h.total = chunk.count;
  h.credit_class = chunk.step_class;
  const bool has_payload = final_sum || chunk.carries_partials();
  h.length = has_payload ? static_cast<std::uint32_t>(range.size() * chunk.element_bytes) : 0;
  return h;
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
  const std::uint64_t cookie = cookie_of(chunk, header);
  const std::uint64_t priority = priority_of(chunk.seq, is_final_sum);
  if (chunk.operation->collective == Collective::kAllReduce) {
    send_window_.send(peer, header, payload, cookie, priority);
  } else {
    send_window_.send_now(peer, header, payload, cookie, priority);
  }
}

void Engine::send_final(Chunk& chunk, int group, int member, Range range) {
  const LocalGroup& local = chunk.program->groups[group];
  const FrameHeader header = header_of(chunk, local.level, local.index, true, range);
  ++chunk.sends;
  hand_over(chunk, local.group.members[member], header, chunk.at_recv(range.begin), true);
}

// Sends what credits and order allow on one flow.
void Engine::pump(Generation& generation, int peer, int level) {
  Flow& flow = *generation.flow(peer, level);
  PartialFrame frame;
  while (flow.pop(&frame)) {
    const Chunk& chunk = chunks_[frame.chunk % chunks_.size()];
    const FrameHeader header = header_of(chunk, level, frame.group_index, false, frame.range);
    hand_over(chunk, peer, header, frame.data, false);
  }
}

void Engine::sent(std::uint64_t cookie) {
  const std::uint64_t index = cookie & kCookieChunk;
  if (failed_ || index >= chunks_.size()) return;
  Chunk& chunk = chunks_[index];
  RIFFLE_CHECK(chunk.active && chunk.sends > 0, "a frame was sent that nobody queued");
  --chunk.sends;
  send_window_.sent(static_cast<std::size_t>(cookie >> kCookieChunkBits));
  finish_if_done(chunk);
  start_chunks();
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
  FrameHeader header;
  header.type = FrameType::kCredit;
  header.seq = generation.number();
  header.credit_class = static_cast<std::uint16_t>(level);
  header.credits = static_cast<std::uint16_t>(credits);
  mesh_->send(peer, header, {}, kNoCookie, kUrgent);
}

// ------------------------------------------------------------------------- the walk between levels

void Engine::reduced(Chunk& chunk, int group, Range range) {
  if (options_.counters != nullptr) {
    const auto at = static_cast<std::size_t>(contributor_);
    options_.counters->last_was(options_.nodes.empty() ? contributor_ : options_.nodes[at]);
  }
  const int fragment = chunk.own_shard(group).fragment_at(range.begin);
  chunk.runs[group].not_final[fragment] = range.size();
  std::uint64_t passed_on = 0;
  for (const int child : chunk.program->groups[group].children) {
    const GroupRun& run = chunk.runs[child];
    const Range part = intersect(range, {run.cuts.front(), run.cuts.back()});
    if (part.is_empty()) continue;
    passed_on += part.size();
    group_executor::own_ready(*this, chunk, child, part);
  }
  // What no later level takes is final here.
  own_elements_final(chunk, group, fragment, range.size() - passed_on);
}

void Engine::completed(Chunk& chunk, int group, Range range) {
  const int parent = chunk.program->groups[group].parent;
  if (parent == kRoot) {
    RIFFLE_CHECK(range.size() <= chunk.not_final, "more final sums than elements");
    chunk.not_final -= range.size();
    return;
  }
  own_elements_final(chunk, parent, chunk.own_shard(parent).fragment_at(range.begin), range.size());
}

void Engine::own_elements_final(Chunk& chunk, int group, int fragment, std::uint64_t elements) {
  std::uint64_t& left = chunk.runs[group].not_final[fragment];
  RIFFLE_CHECK(elements <= left, "more final sums than elements");
  left -= elements;
  if (elements == 0 || left > 0) return;
  const Range range = chunk.own_shard(group).fragment(fragment);
  if (chunk.gathers()) {
    group_executor::gather(*this, chunk, group, range);
  }
  completed(chunk, group, range);
}

}  // namespace riffle
