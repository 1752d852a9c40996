#include "plugin/collective/relaxed/relaxed_run.h"

#include <algorithm>
#include <string>

#include "plugin/collective/relaxed/rules/trailer.h"
#include "plugin/collective/relaxed/shadow_rule_of.h"
#include "plugin/kernels/convert.h"
#include "plugin/kernels/types.h"
#include "topology/plan/limits.h"

namespace riffle {
namespace {

constexpr std::size_t kAlign = 64;  // a cache line

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::string mib(std::size_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20); }

}  // namespace

std::uint64_t digest_of(std::uint64_t layout_digest, std::uint64_t period, std::uint64_t phase) {
  std::uint64_t h = layout_digest;
  for (const std::uint64_t n : {period, phase}) {
    h = (h ^ n) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h == 0 ? 1 : h;
}

Result<std::shared_ptr<RelaxedRun>> RelaxedRun::make(const ModeOrder& order,
                                                     const KnownCalls& calls,
                                                     const RelaxedOptions& options) {
  if (calls.pieces.empty() || calls.digest != order.layout) {
    return invalid_argument("its calls are not those that the mode was ordered for");
  }
  std::shared_ptr<RelaxedRun> run(new RelaxedRun);
  run->mode_ = order.mode;
  run->phase_ = calls.phase;
  run->digest_ = calls.digest;
  if (order.mode == SyncMode::kSparse) {
    if (Status s = run->make_sparse(order, calls, options); !s) return s;
    return run;
  }
  if (order.mode == SyncMode::kNarrow) {
    if (Status s = run->make_narrow(calls, options); !s) return s;
    return run;
  }
  run->trailer_elements_ = rules::trailer_elements(options.size);
  const std::size_t trailer_bytes = run->trailer_elements_ * sizeof(float);
  if (options.chunk_bytes < kLeastPlanChunk + trailer_bytes) {
    return invalid_argument("chunks of " + std::to_string(options.chunk_bytes) +
                            " bytes have no room for trailers");
  }
  // Whole cache lines, as segments are: rounding them up must not make one too long.
  const auto whole = [](std::size_t bytes) { return bytes / kAlign * kAlign; };
  const std::size_t room = whole(options.chunk_bytes - trailer_bytes);
  const auto is_relaxed = [&options](const Layout::Piece& piece) {
    const auto type = static_cast<DataType>(piece.type);
    return rules::supports(type) && piece.total * size_of(type) >= options.settings.min_bytes;
  };
  std::uint64_t longest = 0;
  for (const Layout::Piece& piece : calls.pieces) {
    if (is_relaxed(piece)) longest = std::max(longest, piece.valid);
  }
  // Of the longest call's segments there may be so many.
  const std::size_t least_bytes =
      aligned((longest + kMostOfACall - 1) / kMostOfACall * sizeof(float));
  const std::size_t ordered_bytes =
      order.chunk_bytes == 0
          ? room
          : whole(std::clamp<std::size_t>(order.chunk_bytes, kLeastPlanChunk, room));
  const std::size_t data_bytes = std::clamp(least_bytes, ordered_bytes, room);
  const std::uint64_t most_elements = data_bytes / sizeof(float);
  const std::size_t chunk = data_bytes + trailer_bytes;

  run->momentum_ = static_cast<float>(options.settings.momentum);
  run->shadow_steps_ = options.settings.shadow_steps;
  std::size_t arrays = run->momentum_ > 0 ? 3 : 1;
  if (order.mode == SyncMode::kShadowSync) {
    run->shadow_rule_ = shadow_rule_of(options.settings.shadow, options.size);
    run->has_rounds_over_all_ = is_over_all(options.settings.shadow.variant);
    arrays = static_cast<std::size_t>(run->shadow_rule_->arrays());
  }

  std::size_t state_bytes = 0;
  std::uint64_t lanes = 0;
  std::uint32_t most = 1;
  for (const Layout::Piece& piece : calls.pieces) {
    Position p;
    p.piece = piece;
    p.is_relaxed = is_relaxed(piece);
    if (p.is_relaxed) {
      const std::uint64_t segments = (piece.valid + most_elements - 1) / most_elements;
      if (segments > kMostOfACall) {
        return invalid_argument("a call of " + std::to_string(piece.valid) + " elements needs " +
                                std::to_string(segments) + " chunks, accepted at most " +
                                std::to_string(kMostOfACall) + ": raise RIFFLE_CHUNK_BYTES");
      }
      p.segments = static_cast<std::uint32_t>(segments);
      if (segments > 0) {  // all alike, on cache lines
        constexpr std::uint64_t kGrain = kAlign / sizeof(float);
        const std::uint64_t even = (piece.valid + segments - 1) / segments;
        p.segment_elements = (even + kGrain - 1) / kGrain * kGrain;
        p.segments =
            static_cast<std::uint32_t>((piece.valid + p.segment_elements - 1) / p.segment_elements);
      }
      p.first_lane = lanes;
      lanes += p.segments;
      most = std::max(most, p.segments);
      p.is_due.assign(p.segments, false);
      state_bytes += arrays * aligned(piece.valid * sizeof(float));
    }
    run->positions_.push_back(p);
  }
  if (lanes == 0) return invalid_argument("no call of the job belongs to a large sum of floats");

  const std::size_t least = kCallsUnderWay * most;
  const std::size_t wanted =
      std::clamp<std::size_t>(options.staging_bytes / chunk, least, kMaxSegments);
  const auto segments = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(wanted, std::max<std::uint64_t>(lanes, most)));
  run->bytes_ = state_bytes + segments * aligned(chunk);
  if (run->bytes_ > options.settings.state_limit_bytes) {
    return invalid_argument("it needs " + mib(run->bytes_) + " MiB, RIFFLE_STATE_LIMIT_MB allows " +
                            mib(options.settings.state_limit_bytes));
  }
  Result<std::unique_ptr<SlotMemory>> memory = SlotMemory::map(run->bytes_);
  if (!memory) return memory.status();
  run->memory_ = std::move(*memory);  // zeros

  std::byte* at = run->memory_->data();
  for (Position& p : run->positions_) {
    if (!p.is_relaxed) continue;
    float** const pointers[] = {&p.state, &p.second, &p.third};
    for (std::size_t i = 0; i < arrays; ++i) {
      *pointers[i] = reinterpret_cast<float*>(at);
      at += aligned(p.piece.valid * sizeof(float));
    }
  }
  run->segments_ = std::vector<Segment>(segments);
  for (std::uint32_t i = segments; i-- > 0;) {
    run->segments_[i].data = reinterpret_cast<float*>(at);
    at += aligned(chunk);
    run->give_back(i);
  }
  return run;
}

Status RelaxedRun::make_sparse(const ModeOrder& order, const KnownCalls& calls,
                               const RelaxedOptions& options) {
  auto made = SparseRun::make(order.sparse, calls.pieces, options.settings, options.rank,
                              options.size, options.chunk_bytes / sizeof(float));
  if (!made) return made.status();
  sparse_ = std::move(*made);
  bytes_ = sparse_->bytes();
  for (std::size_t i = 0; i < calls.pieces.size(); ++i) {
    Position p;
    p.piece = calls.pieces[i];
    p.segments = static_cast<std::uint32_t>(sparse_->segments(i).size());
    p.is_relaxed = p.segments > 0;
    positions_.push_back(p);
  }
  return Status::ok();
}

Status RelaxedRun::make_narrow(const KnownCalls& calls, const RelaxedOptions& options) {
  auto made = NarrowRun::make(calls.pieces, options.settings);
  if (!made) return made.status();
  narrow_ = std::move(*made);
  bytes_ = narrow_->bytes();
  for (std::size_t i = 0; i < calls.pieces.size(); ++i) {
    Position p;
    p.piece = calls.pieces[i];
    p.is_relaxed = narrow_->error(i) != nullptr;
    positions_.push_back(p);
  }
  return Status::ok();
}

bool RelaxedRun::is_quiet() const {
  return std::none_of(segments_.begin(), segments_.end(), [](const Segment& s) {
    const Operation::State state = s.operation.state.load(std::memory_order_acquire);
    return state == Operation::State::kRunning || state == Operation::State::kFailed;
  });
}

std::uint32_t RelaxedRun::take(std::uint32_t count) {
  if (count == 0 || free_count_ < count) return kNone;
  const std::uint32_t first = free_;
  std::uint32_t last = first;
  for (std::uint32_t i = 1; i < count; ++i) last = segments_[last].next;
  free_ = segments_[last].next;
  segments_[last].next = kNone;
  free_count_ -= count;
  return first;
}

void RelaxedRun::give_back(std::uint32_t segment) {
  segments_[segment].next = free_;
  free_ = segment;
  ++free_count_;
}

std::uint32_t RelaxedRun::digest_of(std::size_t position, std::uint32_t segment, std::uint64_t step,
                                    bool is_full) const {
  std::uint64_t h = digest_ ^ static_cast<std::uint64_t>(mode_) << 60;
  for (const std::uint64_t n :
       {std::uint64_t{position}, std::uint64_t{segment}, step, std::uint64_t{is_full}}) {
    h = (h ^ n) * 0x9e3779b97f4a7c15u;
    h ^= h >> 29;
  }
  return static_cast<std::uint32_t>(h >> 32);
}

}  // namespace riffle
