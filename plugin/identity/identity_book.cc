#include "plugin/identity/identity_book.h"

#include <algorithm>

#include "plugin/abi/constants.h"

namespace riffle::identity {
namespace {

// Handles: what it is in the lowest three bits, for CollNet all-reduces its number above them.
// Contexts: slot + 1 in the lowest 12 bits, the life above them.
enum Kind : std::uintptr_t {
  kOther = 1,
  kApi = 2,
  kCapturedApi = 3,
  kCollNet = 4,
  kCaptured = 5,
  kUnknown = 6
};
constexpr int kKindBits = 3, kSlotBits = 12;

void* number_as_pointer(std::uintptr_t n) {
  return reinterpret_cast<void*>(n);  // NOLINT(performance-no-int-to-ptr): never dereferenced
}
std::uintptr_t pointer_as_number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }
std::uintptr_t kind_of(const void* handle) {
  return pointer_as_number(handle) & ((std::uintptr_t{1} << kKindBits) - 1);
}

}  // namespace

// -- PROFILER

void* IdentityBook::begin_communicator(const CommEvents::About& about, int* mask) {
  const std::scoped_lock lock(mutex_);
  std::size_t index;
  if (!free_.empty()) {
    index = free_.back();
    free_.pop_back();
  } else {
    index = owned_.size();
    if (index == kMostCommunicators) return nullptr;
    owned_.push_back(std::make_unique<Slot>());
    free_.reserve(owned_.size());
    slots_[index].store(owned_.back().get(), std::memory_order_release);
  }
  Slot& slot = *owned_[index];
  slot.mask = mask;
  slot.has_graphs = false;
  const std::uint32_t life = slot.events.open(about);
  ++communicators_;
  auto known =
      std::find_if(masks_.begin(), masks_.end(), [&](const Mask& m) { return m.mask == mask; });
  if (known == masks_.end()) known = masks_.insert(masks_.end(), {mask, 0});
  ++known->users;
  write_masks();
  return number_as_pointer((std::uintptr_t{life} << kSlotBits) | (index + 1));
}

bool IdentityBook::is_told() const {
  const std::scoped_lock lock(mutex_);
  return !masks_.empty();
}

void IdentityBook::end_communicator(void* context) {
  std::uint32_t life;
  const std::scoped_lock lock(mutex_);
  Slot* slot = slot_of(context, &life);
  if (slot == nullptr) return;
  slot->events.close();
  if (slot->has_graphs.exchange(false)) {
    ++graphs_ended_;
    --with_graphs_;
  }
  for (Mask& m : masks_) {
    if (m.mask == slot->mask) --m.users;
  }
  std::erase_if(masks_, [](const Mask& m) { return m.users == 0; });
  slot->mask = nullptr;
  free_.push_back((pointer_as_number(context) & ((1U << kSlotBits) - 1)) - 1);
}

IdentityBook::Slot* IdentityBook::slot_of(const void* context, std::uint32_t* life) const {
  const std::uintptr_t number = pointer_as_number(context);
  const std::uintptr_t index = number & ((1U << kSlotBits) - 1);
  if (index == 0 || index > kMostCommunicators) return nullptr;
  Slot* slot = slots_[index - 1].load(std::memory_order_acquire);
  *life = static_cast<std::uint32_t>(number >> kSlotBits);
  return slot == nullptr || slot->events.life() != *life ? nullptr : slot;
}

void* IdentityBook::api_started(void* context, bool is_captured) {
  std::uint32_t life;
  Slot* slot = slot_of(context, &life);
  if (is_captured && slot != nullptr && !slot->has_graphs.exchange(true)) ++with_graphs_;
  return number_as_pointer(is_captured ? kCapturedApi : kApi);
}

void* IdentityBook::coll_started(void* context, const void* api, const CollStart& start) {
  std::uint32_t life;
  Slot* slot = slot_of(context, &life);
  std::uint64_t number = 0;
  if (slot == nullptr) return number_as_pointer(kUnknown);
  if (!slot->events.announce(start, ++announcements_, &number)) return number_as_pointer(kOther);
  const Kind kind = kind_of(api) == kCapturedApi ? kCaptured : kCollNet;
  return number_as_pointer((static_cast<std::uintptr_t>(number) << kKindBits) | kind);
}

void IdentityBook::proxy_op_started(CallQueue& queue, void* context, const ProxyOp& op) {
  std::uint32_t life;
  Slot* slot = slot_of(context, &life);
  meet(queue);
  if (slot != nullptr) queue.meet(slot->events, life);
  const bool before = queue.is_in_doubt();
  const std::uintptr_t kind = kind_of(op.parent);
  if (slot == nullptr) {
    if (kind != kOther)
      queue.lost("a collective of a communicator that has ended or is not followed");
  } else if (kind == kCollNet) {
    queue.proxy_op(
        slot->events, life,
        {pointer_as_number(op.parent) >> kKindBits, op.channel, op.steps, op.chunk_bytes});
  } else if (kind == kCaptured || kind == kUnknown) {
    queue.lost("a CUDA graph's replay, or a communicator that is not followed");
  } else if (op.parent == nullptr && op.peer == slot->events.about().ranks) {
    // CollNet's operations have the network itself as their peer, one beyond the last rank.
    queue.lost("a ProxyOp event without its Coll event");
  }
  note_doubt(before, queue);
}

// -- doubts and masks

// A thread that is new has nothing of communicators that ended before.
void IdentityBook::meet(CallQueue& queue) const {
  if (!queue.graphs_ended) queue.graphs_ended = graphs_ended_.load(std::memory_order_acquire);
}

void IdentityBook::rest(CallQueue& queue) {
  const bool before = queue.is_in_doubt();
  queue.rest();
  queue.graphs_ended = graphs_ended_.load(std::memory_order_acquire);
  note_doubt(before, queue);
}

void IdentityBook::note_doubt(bool before, const CallQueue& queue) {
  if (before == queue.is_in_doubt()) return;
  const std::scoped_lock lock(mutex_);
  in_doubt_ += before ? -1 : 1;
  write_masks();
}

// Sleep events only while one is waited for: they come often.
void IdentityBook::write_masks() {
  const int wanted = abi::kProfileProxyOp | (in_doubt_ > 0 ? abi::kProfileProxyCtrl : 0);
  for (const Mask& m : masks_)
    std::atomic_ref<int>(*m.mask).store(wanted, std::memory_order_relaxed);
}

// -- COLLNET

void IdentityBook::begin_coll(std::uint64_t coll, int nodes) {
  const std::scoped_lock lock(objects_mutex_);
  colls_.push_back({coll, nodes});
}

void IdentityBook::add_region(std::uint64_t coll, const void* base, std::size_t bytes) {
  const std::scoped_lock lock(objects_mutex_);
  const std::uintptr_t begin = pointer_as_number(base);
  for (const Region& r : regions_) {
    if (r.coll == coll && r.base == begin && r.bytes == bytes) return;
  }
  regions_.push_back({coll, begin, bytes});
}

void IdentityBook::drop_region(std::uint64_t coll, const void* base) {
  const std::scoped_lock lock(objects_mutex_);
  std::erase_if(regions_, [&](const Region& r) {
    return r.coll == coll && r.base == pointer_as_number(base);
  });
}

void IdentityBook::end_coll(std::uint64_t coll) {
  const std::scoped_lock lock(objects_mutex_);
  std::erase_if(regions_, [&](const Region& r) { return r.coll == coll; });
  std::erase_if(colls_, [&](const Coll& c) { return c.coll == coll; });
}

CollObject IdentityBook::object_of(const CallShape& call) const {
  const std::shared_lock lock(objects_mutex_);
  CollObject object;
  const std::uintptr_t send = pointer_as_number(call.send);
  for (const Region& r : regions_) {
    if (r.coll == call.coll && send >= r.base && send - r.base < r.bytes) {
      object.base = r.base;
      object.bytes = r.bytes;
    }
  }
  for (const Coll& c : colls_) {
    if (c.coll == call.coll) object.nodes = c.nodes;
  }
  return object;
}

const char* IdentityBook::nothing_to_go_by(const CallQueue& queue) const {
  if (communicators_.load(std::memory_order_relaxed) == 0) {
    return "NCCL asked for no profiler of version 4 or later (NCCL 2.27 and later do, with "
           "NCCL_PROFILER_PLUGIN=riffle)";
  }
  if (with_graphs_.load(std::memory_order_relaxed) != 0) {
    return "a communicator captured a CUDA graph";
  }
  if (queue.graphs_ended && *queue.graphs_ended != graphs_ended_.load(std::memory_order_acquire)) {
    return "a communicator that captured a CUDA graph ended";
  }
  return nullptr;
}

CallIdentity IdentityBook::identify(CallQueue& queue, const CallShape& call) {
  meet(queue);
  const bool before = queue.is_in_doubt();
  if (const char* why = nothing_to_go_by(queue)) queue.doubt(why);
  const CallIdentity identity = queue.take(call, object_of(call));
  note_doubt(before, queue);
  if (identity.is_sure) {
    sure_.fetch_add(1, std::memory_order_relaxed);
  } else {
    unsure_.fetch_add(1, std::memory_order_relaxed);
    last_reason_.store(identity.why_not, std::memory_order_relaxed);
  }
  return identity;
}

CallIdentity IdentityBook::look(const CallQueue& queue, const CallShape& call) const {
  if (const char* why = nothing_to_go_by(queue)) {
    CallIdentity identity;
    identity.why_not = why;
    return identity;
  }
  return queue.look(call, object_of(call));
}

Counts IdentityBook::counts() const {
  return {sure_.load(std::memory_order_relaxed), unsure_.load(std::memory_order_relaxed),
          last_reason_.load(std::memory_order_relaxed)};
}

}  // namespace riffle::identity
