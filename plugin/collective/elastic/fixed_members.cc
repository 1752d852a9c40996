#include "plugin/collective/elastic/fixed_members.h"

#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {

FixedMembers::FixedMembers(Mesh* mesh, ControlChannel* control, TimerService* timers,
                           Background* background, const MemberWork::Options& options,
                           std::uint64_t peer_timeout_ns, MemberHooks hooks)
    : mesh_(mesh),
      timers_(timers),
      hooks_(std::move(hooks)),
      peer_timeout_ns_(peer_timeout_ns),
      replans_(options.replan.collectives > 0),
      work_(mesh, control, timers, background, options, hooks_.replan, hooks_.lost) {
  for (int node = 0; node < mesh->size(); ++node) membership_.nodes.push_back(node);
}

FixedMembers::~FixedMembers() { stop_watching(); }

Status FixedMembers::install(const PlanSet& plans, bool knows_lengths) {
  return work_.install(plans, knows_lengths);
}

void FixedMembers::start(const PlanSet& plans) {
  is_started_ = true;
  work_.start(plans, mesh_->rank() == 0 && replans_ ? hooks_.basis() : PlanBasis());
}

// A node that left: a call within groups perhaps does not need it; and it may have done its part of
// a reduce-scatter.
bool FixedMembers::can_do_without(const Operation& operation) const {
  return operation.step != Operation::kExact || operation.collective == Collective::kReduceScatter;
}

void FixedMembers::submit(Operation* operation) {
  // (A call of no elements needs no other node.)
  if (!left_.empty() && operation->count > 0) {
    if (work_.is_idle()) stop_watching();  // what was watched has ended
    if (!can_do_without(*operation)) {
      hooks_.fail(left_ + " closed its communicator; a further collective cannot end");
    } else if (!timer_ && !has_failed()) {
      watch_departed();
    }
  }
  if (operation->sparse != nullptr) {
    work_.submit(operation->sparse, operation);
  } else {
    work_.submit(operation);
  }
}

Result<std::byte*> FixedMembers::get_receive_buffer(int peer, const FrameHeader& header) {
  if (header.type == FrameType::kDone) {
    return remote_error("a frame of nodes that survive losses, where none may be lost");
  }
  if (header.type == FrameType::kSparse && !is_started_) {
    return remote_error("a sparse message before connect is over");
  }
  return work_.get_receive_buffer(peer, header);
}

void FixedMembers::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  work_.arrived(peer, header, payload);
}

void FixedMembers::received(int peer, std::uint32_t kind,
                            const std::vector<std::uint8_t>& message) {
  if (const Status s = work_.received(peer, kind, message); !s) hooks_.lost(peer, s);
}

void FixedMembers::departed(int peer) {
  work_.departed(peer);
  if (left_.empty()) left_ = hooks_.name_of(peer);
  if (is_retired_) return;
  // It has sent us all it ever will. What is running now should end by itself; if not, say so.
  if (!work_.is_idle() && !timer_) watch_departed();
}

void FixedMembers::lost(int peer, const std::string& why) {
  hooks_.spread("lost " + hooks_.name_of(peer) + ": " + why);
}

void FixedMembers::watch_departed() {
  timer_ = timers_->call_at(mesh_->now_ns() + peer_timeout_ns_, [this] {
    timer_.reset();
    if (!work_.is_idle()) hooks_.fail(left_ + " closed its communicator during a collective");
  });
}

void FixedMembers::stop_watching() {
  if (timer_) timers_->cancel(*timer_);
  timer_.reset();
}

bool FixedMembers::retire() {
  is_retired_ = !work_.is_idle();
  if (is_retired_ && !has_failed()) work_.job_ended();
  return is_retired_;
}

bool FixedMembers::end() {
  stop_watching();
  const bool is_clean = is_started_ && work_.is_idle() && !has_failed();
  if (is_clean) work_.job_ended();
  work_.fail();
  return is_clean;
}

}  // namespace riffle
