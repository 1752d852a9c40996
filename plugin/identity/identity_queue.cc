#include "plugin/identity/identity_queue.h"

#include <algorithm>
#include <bit>

namespace riffle::identity {
namespace {

constexpr std::uint64_t kGroupChannels = 8;
constexpr std::uint64_t kSlots = 8;  // in each half of the staging region

CallIdentity unsure(const char* why) {
  CallIdentity identity;
  identity.why_not = why;
  return identity;
}

std::uintptr_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

// Where in the staging region step k, group g lies.
bool lies_at(const CallShape& call, const CollObject& object, std::uint64_t step,
             std::uint64_t offset_in_slot) {
  const std::uint64_t send = address(call.send) - object.base;
  const std::uint64_t recv = address(call.recv) - object.base;
  return send == step % kSlots * (object.bytes / (2 * kSlots)) + offset_in_slot &&
         recv == send + object.bytes / 2;
}

}  // namespace

std::uint64_t CallQueue::Entry::channels() const {
  return static_cast<std::uint64_t>(std::popcount(once));
}

CallQueue::Entry* CallQueue::push() {
  if (size_ == ring_.size()) {
    if (size_ >= kMost) return nullptr;
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(head_), ring_.end());
    head_ = 0;
    ring_.resize(2 * ring_.size());
  }
  ++size_;
  Entry& e = at(size_ - 1);
  e = {};
  return &e;
}

void CallQueue::pop() {
  head_ = (head_ + 1) % ring_.size();
  --size_;
}

void CallQueue::proxy_op(CommEvents& comm, std::uint32_t life, const ProxyOpStart& op) {
  Entry* e = nullptr;
  for (std::size_t i = size_; i-- > 0 && e == nullptr;) {
    Entry& candidate = at(i);
    if (candidate.comm == &comm && candidate.life == life && candidate.what.number == op.number) {
      e = &candidate;
    }
  }
  if (e == nullptr) {
    // Even in doubt: the communicator's order is checked from where it really is.
    Announced what = comm.begin(op.number);
    if (is_out_of_turn(comm, what.stamp) && what.problem == nullptr) {
      what.problem =
          "another communicator's collective of this thread, announced before, is missing";
    }
    if (is_in_doubt()) return;
    e = push();
    if (e == nullptr) return doubt("more collectives wait on one thread than are kept");
    e->comm = &comm;
    e->life = life;
    e->what = what;
    e->what.number = op.number;
    e->problem = what.problem;
    e->steps = static_cast<std::uint64_t>(op.steps);
    e->chunk_bytes = static_cast<std::uint64_t>(op.chunk_bytes);
    if (op.steps < 1 || op.chunk_bytes < 1) e->problem = "a ProxyOp event without steps or chunks";
  }
  if (op.channel < 0 || op.channel > 63) {
    e->problem = "a ProxyOp event of a channel beyond 63";
    return;
  }
  const std::uint64_t bit = std::uint64_t{1} << op.channel;
  if (e->has_begun || (e->twice & bit) != 0) {
    e->problem = "a ProxyOp event came after its collective had begun";
  } else if (e->steps != static_cast<std::uint64_t>(op.steps) ||
             e->chunk_bytes != static_cast<std::uint64_t>(op.chunk_bytes)) {
    e->problem = "channels of one collective differ in steps or chunks";
  }
  e->twice |= e->once & bit;
  e->once |= bit;
}

void CallQueue::meet(const CommEvents& comm, std::uint32_t life) {
  for (Member& m : members_) {
    if (m.comm != &comm) continue;
    m.life = life;
    return;
  }
  members_.push_back({&comm, life});
}

bool CallQueue::is_out_of_turn(const CommEvents& comm, std::uint64_t stamp) const {
  return std::any_of(members_.begin(), members_.end(), [&](const Member& m) {
    if (m.comm->life() != m.life) return m.comm->ended_waiting() == m.life;
    return m.comm != &comm && m.comm->waiting() < stamp;
  });
}

void CallQueue::lost(const char* why) {
  if (is_in_doubt()) return;
  Entry* e = push();
  if (e == nullptr) return doubt(why);
  e->problem = why;
}

// Whether the collective as announced can be what the next call belongs to.
const char* CallQueue::unfit(const Entry& e) const {
  if (e.problem != nullptr) return e.problem;
  if (e.comm->life() != e.life) return "a communicator ended with collectives under way";
  if (e.has_begun) return nullptr;
  if ((e.once & (e.once + 1)) != 0 || e.once != e.twice) {
    return "ProxyOp events of some channels are missing";
  }
  if (e.chunk_bytes % e.what.element_bytes != 0) return "a chunk that is not whole elements";
  return nullptr;
}

CallIdentity CallQueue::judge(const CallShape& call, const CollObject& object,
                              bool* is_registered) const {
  *is_registered = false;
  if (is_in_doubt()) return unsure(doubt_);
  if (size_ == 0) return unsure("a call that no profiler event announced");
  const Entry& e = at(0);
  if (const char* why = unfit(e)) return unsure(why);

  CallIdentity identity;
  identity.comm_id = e.comm->about().comm_id;
  identity.bucket = e.what.sequence;
  identity.buffer = e.what.send;
  identity.output = e.what.recv;
  identity.total_elements = e.what.count;
  const std::uint64_t element = e.what.element_bytes;

  if (call.type != e.what.type) return unsure("the datatype is not the announced one");
  if (e.has_begun && call.op != e.op) return unsure("the operator changed within a collective");
  const std::uint64_t coll = e.comm->coll.load(std::memory_order_relaxed);
  if ((coll != 0 && coll != call.coll) ||
      (object.nodes != 0 && object.nodes != e.comm->about().nodes)) {
    return unsure("the call comes on another communicator's coll object");
  }

  // The job's own buffers, registered: exact counts, one after the other. They never are staging
  // memory, so the addresses tell.
  const std::uint64_t offset = e.next_element * element;
  if (e.channels() == 1 && e.steps == 1 && (e.is_registered || !e.has_begun) &&
      address(call.send) == address(e.what.send) + offset &&
      address(call.recv) == address(e.what.recv) + offset && call.count != 0 &&
      call.count <= e.what.count - e.next_element) {
    *is_registered = true;
    identity.first_element = e.next_element;
    identity.valid_elements = call.count;
    identity.is_last = e.next_element + call.count == e.what.count;
    identity.is_sure = true;
    return identity;
  }
  if (object.base == 0) {
    return unsure("the addresses belong neither to a staging region nor to the announced buffers");
  }

  const std::uint64_t channels = e.channels();
  const std::uint64_t group_channels =
      std::min(kGroupChannels, channels - kGroupChannels * e.group);
  const std::uint64_t chunk = e.chunk_bytes / element;
  if (e.is_registered || call.count != group_channels * chunk) {
    return unsure("the count is not the announced one");
  }
  if (!lies_at(call, object, e.step, kGroupChannels * e.group * e.chunk_bytes)) {
    return unsure("the call lies elsewhere in the staging region than the announced one");
  }
  if (!e.what.is_chain) return unsure("this CollNet algorithm's order of elements is not known");
  const std::uint64_t per_step = channels * chunk;
  if (e.steps != (e.what.count + per_step - 1) / per_step) {
    return unsure("steps, channels and chunks do not make up the announced count");
  }
  identity.first_element = (e.step * channels + kGroupChannels * e.group) * chunk;
  const std::uint64_t left = e.what.count - std::min(e.what.count, identity.first_element);
  identity.valid_elements = std::min(left, call.count);
  identity.is_last = e.step + 1 == e.steps && e.group + 1 == e.groups();
  identity.is_sure = true;
  return identity;
}

CallIdentity CallQueue::look(const CallShape& call, const CollObject& object) const {
  bool is_registered;
  return judge(call, object, &is_registered);
}

CallIdentity CallQueue::take(const CallShape& call, const CollObject& object) {
  bool is_registered;
  const CallIdentity identity = judge(call, object, &is_registered);
  if (!identity.is_sure) {
    doubt(identity.why_not);
    return identity;
  }
  Entry& e = at(0);
  if (!e.has_begun) {
    e.has_begun = true;
    e.op = call.op;
    e.is_registered = is_registered;
    e.comm->coll.store(call.coll, std::memory_order_relaxed);
  }
  e.next_element += call.count;
  if (!is_registered && ++e.group == e.groups()) {
    e.group = 0;
    ++e.step;
  }
  if (identity.is_last) pop();
  return identity;
}

void CallQueue::doubt(const char* why) {
  if (doubt_ == nullptr) doubt_ = why;
  head_ = size_ = 0;
}

void CallQueue::rest() {
  std::erase_if(members_, [](const Member& m) { return m.comm->life() != m.life; });
  doubt_ = nullptr;
  head_ = size_ = 0;
}

}  // namespace riffle::identity
