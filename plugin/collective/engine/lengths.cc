#include "plugin/collective/engine/lengths.h"

#include <algorithm>
#include <string>

#include "plugin/transport/base/mesh.h"

namespace riffle {
namespace {

constexpr std::uint64_t kNoWait = ~0ull;  // for the frame to leave

// What this node knows by itself.
std::uint64_t own_length(const Operation& o) {
  if (o.valid == Operation::kUnknown) return Operation::kUnknown;
  return std::clamp<std::uint64_t>(o.valid, 1, o.count);
}

}  // namespace

Lengths::Lengths(Mesh* mesh)
    : mesh_(mesh), question_of_(mesh->size(), kNone), has_answered_(mesh->size(), false) {}

bool Lengths::is_of_interest(const Operation& o) const {
  return is_on_ && o.collective == Collective::kAllReduce && o.step == Operation::kExact &&
         o.count > 0 && mesh_->size() > 1;
}

bool Lengths::find(Operation* operation, std::uint64_t seq) {
  if (questions_ > 0) answer_all(seq, *operation);
  if (operation->next_element > 0) return true;  // a later chunk of it
  if (!is_of_interest(*operation)) {
    operation->length = operation->count;
    return true;
  }
  if (waits_for_ != seq) {
    if (calls_to_skip_ > 0) {
      --calls_to_skip_;
      operation->length = operation->count;
      return true;
    }
    const std::uint64_t own = own_length(*operation);
    if (own == Operation::kUnknown) return ask(operation, seq);
    settle(operation, own);
    return true;
  }
  if (found_ == Operation::kUnknown && answers_missing_ > 0) return false;
  waits_for_ = kNone;
  settle(operation, found_);
  return true;
}

bool Lengths::ask(Operation* operation, std::uint64_t seq) {
  ++asked_;
  waits_for_ = seq;
  waiting_count_ = operation->count;
  found_ = Operation::kUnknown;
  answers_missing_ = mesh_->size() - 1;
  std::fill(has_answered_.begin(), has_answered_.end(), false);
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank()) send(peer, LengthFrame::kQuestion, seq, Operation::kUnknown);
  }
  return false;
}

void Lengths::settle(Operation* operation, std::uint64_t length) {
  if (length != Operation::kUnknown) {
    operation->length = length;
    in_a_row_ = 0;
    pause_ = kShortestPause;
    return;
  }
  operation->length = operation->count;
  if (++in_a_row_ < kPatience) return;
  calls_to_skip_ = pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

void Lengths::answer_all(std::uint64_t seq, const Operation& operation) {
  for (int peer = 0; peer < mesh_->size(); ++peer) {
    if (question_of_[peer] == kNone || question_of_[peer] > seq) continue;
    // One about a former chunk is of no use to the peer any more.
    if (question_of_[peer] == seq) send(peer, LengthFrame::kAnswer, seq, own_length(operation));
    question_of_[peer] = kNone;
    --questions_;
  }
}

Status Lengths::arrived(int peer, const LengthFrame& frame, const Operation* running,
                        std::uint64_t next_seq) {
  if (frame.kind == LengthFrame::kQuestion) {
    if (frame.chunk < next_seq) {  // not running any more: the peer has heard from another node
      send(peer, LengthFrame::kAnswer, frame.chunk,
           running == nullptr ? Operation::kUnknown : own_length(*running));
    } else if (frame.chunk == waits_for_) {
      send(peer, LengthFrame::kAnswer, frame.chunk, Operation::kUnknown);
    } else {
      // A later question of the peer's may have overtaken this one.
      questions_ += question_of_[peer] == kNone;
      question_of_[peer] =
          question_of_[peer] == kNone ? frame.chunk : std::max(question_of_[peer], frame.chunk);
    }
    return Status::ok();
  }
  if (frame.kind != LengthFrame::kAnswer)
    return remote_error("neither question nor answer about a length");
  if (frame.chunk != waits_for_ || has_answered_[peer]) return Status::ok();
  has_answered_[peer] = true;
  --answers_missing_;
  if (frame.elements == Operation::kUnknown) return Status::ok();
  if (frame.elements == 0 || frame.elements > waiting_count_ ||
      (found_ != Operation::kUnknown && found_ != frame.elements)) {
    return remote_error("the call at chunk " + std::to_string(frame.chunk) + " has " +
                        std::to_string(frame.elements) + " valid elements there, here " +
                        (found_ == Operation::kUnknown ? "at most " + std::to_string(waiting_count_)
                                                       : std::to_string(found_)) +
                        ": all nodes must call the same collectives in the same order");
  }
  found_ = frame.elements;
  return Status::ok();
}

std::vector<int> Lengths::unanswered() const {
  std::vector<int> peers;
  for (int peer = 0; waits_for_ != kNone && peer < mesh_->size(); ++peer) {
    if (peer != mesh_->rank() && !has_answered_[peer]) peers.push_back(peer);
  }
  return peers;
}

void Lengths::send(int peer, LengthFrame::Kind kind, std::uint64_t seq, std::uint64_t length) {
  LengthFrame frame;
  frame.chunk = seq;
  frame.elements = length;
  frame.kind = kind;
  mesh_->send(peer, header_of(frame), {}, kNoWait, kUrgent);
}

void Lengths::clear() {
  std::fill(question_of_.begin(), question_of_.end(), kNone);
  questions_ = 0;
  waits_for_ = kNone;
}

}  // namespace riffle
