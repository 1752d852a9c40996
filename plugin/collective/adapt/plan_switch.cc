#include "plugin/collective/adapt/plan_switch.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/base/byte_io.h"
#include "topology/base/check.h"

namespace riffle {
namespace {

constexpr std::uint64_t kMostSeq = std::uint64_t{1} << 62;  // far from where sums of them wrap

}  // namespace

PlanSwitch::PlanSwitch(int rank, int size, Steps steps, std::uint32_t first_kind)
    : rank_(rank), size_(size), steps_(std::move(steps)), first_kind_(first_kind) {}

std::vector<int> PlanSwitch::children() const {
  std::vector<int> all;
  for (const int child : {2 * rank_ + 1, 2 * rank_ + 2}) {
    if (child < size_) all.push_back(child);
  }
  return all;
}

void PlanSwitch::begin(const Order& order) {
  RIFFLE_CHECK(is_root() && !is_running(), "one change of the plan at a time, by node 0");
  ++attempt_;
  take_order(order);
}

Status PlanSwitch::received(int peer, std::uint32_t kind,
                            const std::vector<std::uint8_t>& message) {
  ByteReader reader(message);
  const std::uint64_t attempt = reader.number();
  const bool from_parent = !is_root() && peer == parent();
  if (kind == prepare_kind() && from_parent) {
    Order order;
    order.horizon_ns = reader.number();
    order.digest = reader.number();
    order.plans = reader.blob<std::vector<std::uint8_t>>();
    if (reader.is_complete() && attempt > attempt_) {
      if (is_running()) steps_.drop();  // its decision is on its way by another path, and is no
      attempt_ = attempt;
      take_order(order);
    }
  } else if (kind == prepared_kind()) {
    const std::uint64_t seq = reader.number();
    const std::string problem = reader.text();
    if (reader.is_complete() && is_running() && attempt == attempt_) {
      if (std::erase(missing_, peer) == 0 || seq > kMostSeq) {
        return remote_error(
            "a report about a change of plan or mode that this node does not wait for");
      }
      if (problem_.empty()) problem_ = problem;
      subtree_seq_ = std::max(subtree_seq_, seq);
      report_if_complete();
    }
  } else if (kind == decision_kind() && (from_parent || peer == 0)) {
    const bool is_on = reader.number() != 0;
    const std::uint64_t seq = reader.number();
    if (reader.is_complete() && !is_on && attempt > attempt_) {
      // It has overtaken its order, which comes through the parent and is of no use any more.
      if (is_running()) steps_.drop();
      phase_ = Phase::kIdle;
      attempt_ = attempt;
    } else if (reader.is_complete() && is_running() && attempt == attempt_) {
      if (is_on && !can_begin_at(seq)) {
        return remote_error("a change of plan or mode at " + std::to_string(seq) +
                            ", which this node has not agreed to");
      }
      take_decision({attempt, is_on, seq});
    }
  } else {
    return remote_error("unexpected message " + std::to_string(kind) +
                        " about a change of plan or mode");
  }
  return reader.is_complete() ? Status::ok()
                              : remote_error("mangled message about a change of plan or mode");
}

bool PlanSwitch::can_begin_at(std::uint64_t seq) const {
  return phase_ == Phase::kPromised && problem_.empty() && seq >= subtree_seq_ && seq <= kMostSeq;
}

void PlanSwitch::take_order(const Order& order) {
  phase_ = Phase::kPreparing;
  own_is_prepared_ = false;
  subtree_seq_ = 0;
  problem_.clear();
  horizon_ns_ = order.horizon_ns;
  ByteWriter w;
  w.number(attempt_);
  w.number(order.horizon_ns);
  w.number(order.digest);
  w.blob(order.plans);
  const std::vector<std::uint8_t> message = w.take();
  missing_ = children();
  for (const int child : missing_) steps_.send(child, prepare_kind(), message);
  steps_.prepare(order, [this, attempt = attempt_](const Status& s) { own_prepared(attempt, s); });
}

void PlanSwitch::own_prepared(std::uint64_t attempt, const Status& status) {
  if (attempt != attempt_ || phase_ != Phase::kPreparing) {
    if (status.is_ok() && phase_ != Phase::kPromised) steps_.drop();  // decided while we prepared
    return;
  }
  own_is_prepared_ = status.is_ok();
  if (!status && problem_.empty()) {
    const int number = steps_.number < 0 ? rank_ : steps_.number;
    problem_ = "node " + std::to_string(number) + ": " + status.message();
  }
  report_if_complete();
}

void PlanSwitch::report_if_complete() {
  if (phase_ != Phase::kPreparing) return;
  if (problem_.empty() && (!own_is_prepared_ || !missing_.empty())) return;
  if (problem_.empty()) subtree_seq_ = std::max(subtree_seq_, steps_.hold(horizon_ns_));
  phase_ = Phase::kPromised;
  if (is_root()) return decide(problem_.empty() && !has_departures_);
  ByteWriter w;
  w.number(attempt_);
  w.number(subtree_seq_);
  w.blob(problem_);
  steps_.send(parent(), prepared_kind(), w.take());
}

void PlanSwitch::decide(bool is_on) {
  const std::string problem = problem_.empty() ? "a node closed its communicator" : problem_;
  last_ = {attempt_, is_on, subtree_seq_};
  take_decision(last_);
  if (has_departures_) tell_all(last_);
  steps_.decided(is_on ? Result<std::uint64_t>(last_.seq) : remote_error(problem));
}

namespace {

std::vector<std::uint8_t> encode_decision(std::uint64_t attempt, bool is_on, std::uint64_t seq) {
  ByteWriter w;
  w.number(attempt);
  w.number(is_on ? 1 : 0);
  w.number(seq);
  return w.take();
}

}  // namespace

void PlanSwitch::take_decision(const Decision& d) {
  phase_ = Phase::kIdle;
  for (const int child : children()) {
    steps_.send(child, decision_kind(), encode_decision(d.attempt, d.is_on, d.seq));
  }
  if (d.is_on) {
    steps_.use(d.seq);
  } else {
    steps_.drop();
  }
}

void PlanSwitch::tell_all(const Decision& d) {
  for (int peer = 1; peer < size_; ++peer) {
    steps_.send(peer, decision_kind(), encode_decision(d.attempt, d.is_on, d.seq));
  }
}

void PlanSwitch::departed(int peer) {
  has_departures_ = true;
  if (is_root()) {
    if (is_running()) {
      decide(false);
    } else if (last_.attempt > 0) {
      tell_all(last_);
    }
  } else if (peer == 0 && parent() == 0 && is_running()) {
    take_decision({attempt_, false, 0});
  }
}

}  // namespace riffle
