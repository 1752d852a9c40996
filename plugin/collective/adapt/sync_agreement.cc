#include "plugin/collective/adapt/sync_agreement.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "plugin/config/log.h"

namespace riffle {
namespace {

// Guards against mistakes, not forgers.
std::uint64_t digest_of(const std::vector<std::uint8_t>& bytes) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const std::uint8_t byte : bytes) h = (h ^ byte) * 0x100000001b3u;
  return h;
}

}  // namespace

std::vector<std::uint8_t> encode(const ModeOrder& order) {
  ByteWriter w;
  w.number(static_cast<std::uint64_t>(order.mode));
  w.number(order.layout);
  w.number(order.chunk_bytes);
  if (order.mode == SyncMode::kSparse) {
    w.number(order.sparse.teams);
    w.number(order.sparse.is_recursive ? 1 : 0);
    w.number(order.sparse.node_at.size());
    for (const std::uint64_t node : order.sparse.node_at) w.number(node);
    w.blob(order.sparse.is_sparse);
  }
  return w.take();
}

Result<ModeOrder> decode_mode_order(const std::vector<std::uint8_t>& bytes) {
  ByteReader reader(bytes);
  ModeOrder order;
  const std::uint64_t mode = reader.number();
  order.mode = static_cast<SyncMode>(mode);
  order.layout = reader.number();
  order.chunk_bytes = reader.number();
  if (order.mode == SyncMode::kSparse) {
    order.sparse.teams = reader.number();
    order.sparse.is_recursive = reader.number() != 0;
    for (std::uint64_t n = reader.number(); n > 0 && reader.is_ok(); --n) {
      order.sparse.node_at.push_back(reader.number());
    }
    order.sparse.is_sparse = reader.blob<std::vector<std::uint8_t>>();
  }
  if (!reader.is_complete() || mode > static_cast<std::uint64_t>(SyncMode::kNarrow)) {
    return remote_error("mangled order of a mode");
  }
  return order;
}

SyncAgreement::SyncAgreement(int rank, int size, SyncAgreementOptions options,
                             ModeParticipant* participant, Background* background, Hooks hooks)
    : is_root_(rank == 0),
      size_(size),
      options_(options),
      participant_(participant),
      background_(background),
      hooks_(std::move(hooks)),
      switch_(rank, size,
              {.number = hooks_.number,
               .send = hooks_.send,
               .prepare = [this](const PlanSwitch::Order& o,
                                 const std::function<void(Status)>& f) { prepare(o, f); },
               .hold = [this](std::uint64_t ns) { return participant_->hold(hooks_.now_ns(), ns); },
               .use = [this](std::uint64_t call) { participant_->use(call); },
               .drop = [this] { participant_->drop(); },
               .decided = [this](const Result<std::uint64_t>& call) { decided(call); }},
              PlanSwitch::kModeKinds) {}

void SyncAgreement::job_ended() {
  const bool is_wanted = options_.mode != SyncMode::kExact && size_ > 1;
  if (!is_root_ || is_over_ || !is_wanted || std::exchange(was_told_, true)) return;
  if (participant_->span().begin != ModeSpan::kNone) return;
  if (waits_for_.empty()) {
    const std::uint64_t steps = participant_->report().steady_steps;
    if (steps == 0) return;  // hardly any calls
    waits_for_ = "the same calls for " + std::to_string(steps) +
                 " steps, but no replanning interval was over";
  }
  log_info("{} never began, sums were exact: {}", name_of(options_.mode), waits_for_);
}

void SyncAgreement::put(ByteWriter* writer) const {
  for (const std::uint64_t n : {gathered_.nodes, gathered_.layout, gathered_.steady_steps,
                                gathered_.relaxed_nodes, gathered_.doubts, gathered_.mismatches}) {
    writer->number(n);
  }
  writer->blob(gathered_.why);
}

SyncReport SyncAgreement::get(ByteReader* reader) {
  SyncReport r;
  for (std::uint64_t* n :
       {&r.nodes, &r.layout, &r.steady_steps, &r.relaxed_nodes, &r.doubts, &r.mismatches}) {
    *n = reader->number();
  }
  r.why = reader->text();
  return r;
}

void SyncAgreement::interval_ended(std::uint64_t round_ns, bool may_begin) {
  if (switch_.is_running() || has_departures_ || is_over_) return;
  const SyncReport& r = gathered_;
  const auto nodes = static_cast<std::uint64_t>(size_);
  if (r.relaxed_nodes > 0) {
    if (is_ending_) return;
    const bool is_inherited = !std::exchange(is_relaxed_, true);
    if (is_inherited && options_.mode == SyncMode::kSparse) {
      return order(SyncMode::kExact, "nodes were lost", round_ns);
    }
    // Where calls left the agreed sequence, nodes went exact by themselves, all at the same call;
    // reports taken on both sides of it are no reason to worry, and the order only confirms it.
    if (r.relaxed_nodes < nodes) return order(SyncMode::kExact, "the calls changed", round_ns);
    if (r.mismatches > 0) {
      return order(SyncMode::kExact,
                   "digests of a group did not match in " + std::to_string(r.mismatches) + " calls",
                   round_ns);
    }
    if (r.doubts > 0) {
      return order(SyncMode::kExact,
                   "a node could not tell in " + std::to_string(r.doubts) +
                       " calls which gradients they held (" + r.why + ")",
                   round_ns);
    }
    return;
  }
  if (std::exchange(is_relaxed_, false) && !std::exchange(is_ending_, false)) {
    pause();
    log_warn("{} ended: the calls changed; sums are exact from there on{}", name_of(options_.mode),
             (is_same_on_all_nodes(options_.mode)
                  ? ""
                  : " (see docs/policies.md for what the nodes' parameters may differ by)"));
    if (hooks_.changed) hooks_.changed({SyncMode::kExact, 0, "the calls changed"});
  }
  if (intervals_to_wait_ > 0) {
    --intervals_to_wait_;
    return;
  }
  if (options_.mode == SyncMode::kExact || r.nodes != nodes || nodes < 2) return;
  if (!may_begin) {
    waits_for_ = "the plan has no groups for it";
    return;
  }
  if (r.layout == 0 || r.doubts > 0) {
    waits_for_ = r.why.empty() ? "the calls do not repeat" : r.why;
    if (++unknown_intervals_ == kToldAfter) {
      was_told_ = true;
      log_info("{} has not begun, sums are exact: {}", name_of(options_.mode), waits_for_);
    }
    return;
  }
  if (r.steady_steps < options_.warmup_steps) {
    waits_for_ = "the same calls for " + std::to_string(r.steady_steps) + " of " +
                 std::to_string(options_.warmup_steps) + " steps (RIFFLE_WARMUP_STEPS)";
    return;
  }
  order(options_.mode, "the same calls for " + std::to_string(r.steady_steps) + " steps", round_ns);
}

void SyncAgreement::order(SyncMode mode, std::string cause, std::uint64_t round_ns) {
  cause_ = std::move(cause);
  waits_for_ = "the nodes were agreeing on its first call";
  ordered_ = {};
  ordered_.mode = mode;
  if (mode != SyncMode::kExact) {
    ordered_.layout = gathered_.layout;
    ordered_.chunk_bytes = hooks_.chunk_bytes();
  }
  if (mode == SyncMode::kSparse) {
    Result<SparseOrder> sparse = hooks_.sparse_order();
    if (!sparse) return better_not(sparse.status().message());
    ordered_.sparse = std::move(*sparse);
    better_not_.clear();
    if (!ordered_.sparse.reason.empty()) cause_ += "; " + ordered_.sparse.reason;
  }
  PlanSwitch::Order order;
  order.plans = encode(ordered_);
  order.digest = digest_of(order.plans);
  order.horizon_ns = options_.least_horizon_ns + 4 * round_ns;
  switch_.begin(order);
}

// Said once for each reason; asked again after the pause, when the network may have changed.
void SyncAgreement::better_not(const std::string& why) {
  pause();
  if (why == better_not_) return;
  better_not_ = why;
  was_told_ = true;
  log_info("{} does not begin: {}", name_of(options_.mode), why);
  if (hooks_.changed) hooks_.changed({SyncMode::kExact, 0, why});
}

void SyncAgreement::pause() {
  intervals_to_wait_ = pause_;
  pause_ = std::min(2 * pause_, kLongestPause);
}

void SyncAgreement::decided(const Result<std::uint64_t>& first_call) {
  if (!first_call) {
    // An ordinary thing where the calls have just changed; the memory's limit is not.
    if (pause_ == 1 || pause_ == kLongestPause) {
      was_told_ = true;
      log_warn("{} does not begin: {}", name_of(ordered_.mode), first_call.status().message());
    }
    return pause();
  }
  const bool begins = ordered_.mode != SyncMode::kExact;
  is_relaxed_ = true;
  is_ending_ = !begins;
  if (!begins) pause();
  const std::string line = std::string(name_of(ordered_.mode)) + " from call " +
                           std::to_string(*first_call) + " on: " + cause_;
  begins ? log_info(line) : log_warn(line);
  if (hooks_.changed) hooks_.changed({ordered_.mode, *first_call, cause_});
}

void SyncAgreement::prepare(const PlanSwitch::Order& order,
                            const std::function<void(Status)>& prepared) {
  auto outcome = std::make_shared<Result<ModeParticipant::Take>>(internal_error("not made"));
  const auto make = [outcome, order, participant = participant_] {
    try {
      const Result<ModeOrder> decoded = decode_mode_order(order.plans);
      if (!decoded) {
        *outcome = decoded.status();
      } else if (digest_of(order.plans) != order.digest) {
        *outcome = remote_error("the order's checksum is wrong");
      } else {
        *outcome = participant->make(*decoded);
      }
    } catch (const std::exception& e) {
      *outcome = internal_error(std::string("cannot take a mode: ") + e.what());
    }
  };
  const auto then = [this, outcome, prepared] {
    if (is_over_) return;
    if (*outcome) (**outcome)();
    prepared(outcome->is_ok() ? Status::ok() : outcome->status());
  };
  if (!background_->run(make, then)) {
    prepared(system_error("no thread to prepare a mode"));
  }
}

}  // namespace riffle
